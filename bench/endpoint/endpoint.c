// SPDX-License-Identifier: Apache-2.0
// A model endpoint that costs next to nothing: canned OpenAI replies, HTTP/1.1 keep-alive, one thread, epoll(7).
//
//   endpoint PORT LATENCY_MS [STATUS SHARE_PERCENT [RATE]]
//
// prints the port it listens on (PORT 0 = any), serves until killed. SHARE_PERCENT of the requests (one at random of each
// 20, where it is 5) get STATUS at once; so do those above RATE a second (a token bucket that holds a tenth of a second's worth).
//
// POST */chat/completions, */completions, */responses reply after LATENCY_MS; GET */models, /health and /served
// (the number of POSTs answered so far, and of those refused) at once. Request bodies need a Content-Length; others get 411.
// Each reply has an id of its own, as those of any model server: equal bytes would look like one reply sent twice.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FDS = 1 << 16, CHUNK = 1 << 16, EVENTS = 512, ID_WITHIN = 32 };

#define ANSWER                                                                                                    \
    "First we read what is given. There are 6 boxes with 7 apples each, so we multiply the two numbers: "         \
    "6 times 7 makes 42. Nothing is taken away and nothing is added later on. The answer is \\\\boxed{42}."
#define USAGE "\"usage\":{\"prompt_tokens\":96,\"completion_tokens\":57,\"total_tokens\":153}}"

static const char CHAT[] =
    "{\"id\":\"chatcmpl-00000000\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"fake\",\"choices\":["
    "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"" ANSWER "\"},\"logprobs\":null,"
    "\"finish_reason\":\"stop\"}]," USAGE;
static const char TEXT[] =
    "{\"id\":\"cmpl-00000000\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"fake\",\"choices\":["
    "{\"index\":0,\"text\":\"" ANSWER "\",\"logprobs\":null,\"finish_reason\":\"stop\"}]," USAGE;
static const char RESPONSES[] =
    "{\"id\":\"resp_00000000\",\"object\":\"response\",\"created_at\":1700000000,\"model\":\"fake\",\"status\":\"completed\","
    "\"output\":[{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"completed\",\"content\":["
    "{\"type\":\"output_text\",\"text\":\"" ANSWER "\",\"annotations\":[]}]}],"
    "\"usage\":{\"input_tokens\":96,\"output_tokens\":57,\"total_tokens\":153}}";
static const char MODELS[] =
    "{\"object\":\"list\",\"data\":[{\"id\":\"fake\",\"object\":\"model\",\"owned_by\":\"bench\",\"max_model_len\":32768}]}";
static const char HEALTH[] = "{\"status\":\"ok\"}";
static const char REFUSED[] = "{\"error\":{\"message\":\"scripted refusal\",\"type\":\"server_error\"}}";
static const char NOT_FOUND[] = "{\"error\":{\"message\":\"no such route\",\"type\":\"not_found_error\",\"code\":404}}";
static const char NO_LENGTH[] = "{\"error\":{\"message\":\"Content-Length needed\",\"type\":\"bad_request\",\"code\":411}}";

typedef struct {
    int open, closing;
    uint32_t generation;  // tells a delayed reply whether its connection is still the same
    char *in, *out;
    size_t in_len, in_cap, out_len, out_cap, out_sent;
} Connection;

typedef struct {
    uint64_t due;
    int fd, close_after;
    uint32_t generation;
    const char *body;
} Delayed;

static Connection connections[MAX_FDS];
static Delayed *queue;  // a ring: the latency is the same for all, so that first in is first due
static size_t queue_head, queue_len, queue_cap;
static uint64_t latency_ns, served, refused;
static double rate, tokens;
static uint64_t every, drawn, chosen, refilled;
static char status_line[64];
static int poller;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void reserve(char **buffer, size_t *cap, size_t need) {
    if (need <= *cap) return;
    while (*cap < need) *cap = *cap ? *cap * 2 : 4096;
    if (!(*buffer = realloc(*buffer, *cap))) die("realloc");
}

static void hang_up(int fd) {
    Connection *c = &connections[fd];
    close(fd);
    c->open = 0;
    c->generation++;
    c->in_len = c->out_len = c->out_sent = 0;
}

static void watch(int fd, uint32_t events) {
    struct epoll_event e = {.events = events, .data.fd = fd};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, fd, &e)) die("epoll_ctl");
}

static void flush_out(int fd) {
    Connection *c = &connections[fd];
    while (c->out_sent < c->out_len) {
        ssize_t n = send(fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return watch(fd, EPOLLIN | EPOLLOUT);
        if (n < 0) return hang_up(fd);
        c->out_sent += (size_t)n;
    }
    if (c->out_len) c->out_sent = c->out_len = 0;
    if (c->closing) hang_up(fd);
}

static void reply(int fd, const char *status, const char *body, int close_after) {
    Connection *c = &connections[fd];
    size_t length = strlen(body);
    reserve(&c->out, &c->out_cap, c->out_len + length + 256);
    c->out_len += (size_t)sprintf(c->out + c->out_len,
                                  "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n", status,
                                  length, close_after ? "Connection: close\r\n" : "");
    char *start = memcpy(c->out + c->out_len, body, length), number[9];
    char *id = length > ID_WITHIN ? memmem(start, ID_WITHIN, "00000000", 8) : NULL;
    if (id) {
        snprintf(number, sizeof number, "%08x", (unsigned)served);
        memcpy(id, number, 8);
    }
    c->out_len += length;
    c->closing |= close_after;
}

static void reply_later(int fd, const char *body, int close_after) {
    if (queue_len == queue_cap) {
        size_t cap = queue_cap ? queue_cap * 2 : 1024;
        Delayed *wider = malloc(cap * sizeof *wider);
        if (!wider) die("malloc");
        for (size_t i = 0; i < queue_len; i++) wider[i] = queue[(queue_head + i) % queue_cap];
        free(queue);
        queue = wider, queue_head = 0, queue_cap = cap;
    }
    Delayed *d = &queue[(queue_head + queue_len++) % queue_cap];
    *d = (Delayed){now_ns() + latency_ns, fd, close_after, connections[fd].generation, body};
}

static void send_due(void) {
    uint64_t now = now_ns();
    while (queue_len && queue[queue_head].due <= now) {
        Delayed d = queue[queue_head];
        queue_head = (queue_head + 1) % queue_cap;
        queue_len--;
        if (!connections[d.fd].open || connections[d.fd].generation != d.generation) continue;
        served++;
        reply(d.fd, "200 OK", d.body, d.close_after);
        flush_out(d.fd);
    }
}

// The value of a header field in `head` (which ends with an empty line), or NULL.
static const char *header(const char *head, const char *end, const char *name) {
    size_t length = strlen(name);
    for (const char *line = memchr(head, '\n', (size_t)(end - head)); line && line + 1 < end;
         line = memchr(line + 1, '\n', (size_t)(end - line - 1)))
        if ((size_t)(end - line) > length + 2 && !strncasecmp(line + 1, name, length) && line[1 + length] == ':')
            return line + 2 + length + strspn(line + 2 + length, " \t");
    return NULL;
}

static int ends_with(const char *path, size_t length, const char *tail) {
    size_t n = strlen(tail);
    return length >= n && !memcmp(path + length - n, tail, n);
}

static int refuses(void) {
    if (every && drawn % every == 0) chosen = drawn + (uint64_t)lrand48() % every;
    if (every && drawn++ == chosen) return 1;
    if (rate <= 0) return 0;
    uint64_t now = now_ns();
    tokens += (double)(now - refilled) * rate / 1e9;
    refilled = now;
    if (tokens > rate / 10 + 1) tokens = rate / 10 + 1;
    if (tokens < 1) return 1;
    tokens -= 1;
    return 0;
}

static void route(int fd, const char *head, const char *end) {
    const char *value = header(head, end, "Connection");
    int close_after = value && !strncasecmp(value, "close", 5);
    const char *path = memchr(head, ' ', (size_t)(end - head));
    if (!path) return hang_up(fd);
    size_t length = strcspn(++path, " ?\r");
    if (!strncmp(head, "GET ", 4)) {
        char count[64];
        snprintf(count, sizeof count, "{\"served\":%llu,\"refused\":%llu}", (unsigned long long)served,
                 (unsigned long long)refused);
        if (ends_with(path, length, "/models")) return reply(fd, "200 OK", MODELS, close_after);
        if (ends_with(path, length, "/health")) return reply(fd, "200 OK", HEALTH, close_after);
        if (ends_with(path, length, "/served")) return reply(fd, "200 OK", count, close_after);
        return reply(fd, "404 Not Found", NOT_FOUND, close_after);
    }
    const char *body = ends_with(path, length, "/chat/completions") ? CHAT
                       : ends_with(path, length, "/completions")    ? TEXT
                       : ends_with(path, length, "/responses")      ? RESPONSES
                                                                    : NULL;
    if (!body) return reply(fd, "404 Not Found", NOT_FOUND, close_after);
    if (refuses()) {
        refused++;
        return reply(fd, status_line, REFUSED, close_after);
    }
    if (latency_ns) return reply_later(fd, body, close_after);
    served++;
    reply(fd, "200 OK", body, close_after);
}

// Takes whole requests off the front of what was read.
static void parse(int fd) {
    Connection *c = &connections[fd];
    size_t at = 0;
    while (c->open && !c->closing) {
        char *head = c->in + at;
        char *end = memmem(head, c->in_len - at, "\r\n\r\n", 4);
        if (!end) break;
        end += 4;
        const char *length = header(head, end, "Content-Length");
        if (!length && header(head, end, "Transfer-Encoding")) {
            reply(fd, "411 Length Required", NO_LENGTH, 1);
            break;
        }
        size_t size = (size_t)(end - head) + (length ? strtoul(length, NULL, 10) : 0);
        if (c->in_len - at < size) break;
        route(fd, head, end);
        at += size;
    }
    if (!c->open) return;
    memmove(c->in, c->in + at, c->in_len - at);
    c->in_len -= at;
    flush_out(fd);
}

static void read_in(int fd) {
    Connection *c = &connections[fd];
    for (;;) {
        reserve(&c->in, &c->in_cap, c->in_len + CHUNK + 1);
        ssize_t n = recv(fd, c->in + c->in_len, CHUNK, 0);
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) return hang_up(fd);
        c->in_len += (size_t)n;
        c->in[c->in_len] = 0;
        if (n < CHUNK) break;
    }
    parse(fd);
}

static void accept_all(int listener) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        if (fd >= MAX_FDS) {
            close(fd);
            continue;
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[fd].open = 1;
        connections[fd].closing = 0;
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
    }
}

static int listen_on(int port) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 4096)) die("listen");
    socklen_t size = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    latency_ns = argc > 2 ? strtoull(argv[2], NULL, 10) * 1000000u : 0;
    snprintf(status_line, sizeof status_line, "%s Refused", argc > 3 ? argv[3] : "503");
    every = argc > 4 && atof(argv[4]) > 0 ? (uint64_t)(100 / atof(argv[4]) + 0.5) : 0;
    rate = argc > 5 ? atof(argv[5]) : 0;
    tokens = rate / 10 + 1, refilled = now_ns();
    int listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    struct epoll_event ready[EVENTS], e = {.events = EPOLLIN, .data.fd = listener};
    if ((poller = epoll_create1(EPOLL_CLOEXEC)) < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e)) die("epoll");
    for (;;) {
        int wait = -1;
        if (queue_len) {
            uint64_t now = now_ns(), due = queue[queue_head].due;
            wait = due <= now ? 0 : (int)((due - now + 999999) / 1000000);
        }
        int n = epoll_wait(poller, ready, EVENTS, wait);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                accept_all(listener);
                continue;
            }
            if (connections[fd].open && ready[i].events & EPOLLOUT) {
                watch(fd, EPOLLIN);
                flush_out(fd);
            }
            if (connections[fd].open && ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_in(fd);
        }
        send_due();
    }
}
