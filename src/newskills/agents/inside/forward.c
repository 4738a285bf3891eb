/* SPDX-License-Identifier: Apache-2.0
 *
 * forward SOCKET PORT STOP WORD...
 *
 * Brings what is sent to 127.0.0.1:PORT to the unix socket SOCKET and runs the command WORD... meanwhile, without input.
 * Ends as the command does (128 + signal where one ended it), with all that is left of its process group. Where the
 * file STOP appears, the command is killed and the exit code is 75; where the port is taken, it is 98.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPPED = 75, TAKEN = 98, FAILED = 99, CHUNK = 1 << 16 };

static int write_all(int target, const char *data, ssize_t size)
{
    while (size > 0) {
        ssize_t written = write(target, data, (size_t)size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        data += written;
        size -= written;
    }
    return 0;
}

static void copy_both_ways(int client, int remote)
{
    static char buffer[CHUNK];
    struct pollfd ends[2] = {{client, POLLIN, 0}, {remote, POLLIN, 0}};
    int open_ends = 2;
    while (open_ends > 0) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int side = 0; side < 2; side++) {
            if (ends[side].fd < 0 || !ends[side].revents)
                continue;
            int target = side == 0 ? remote : client;
            ssize_t size = read(ends[side].fd, buffer, sizeof buffer);
            if (size < 0 && errno == EINTR)
                continue;
            if (size < 0 || (size > 0 && write_all(target, buffer, size) < 0))
                return;
            if (size == 0) {
                shutdown(target, SHUT_WR);
                ends[side].fd = -1;
                open_ends--;
            }
        }
    }
}

static void serve(int client, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int remote = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (remote >= 0 && connect(remote, (struct sockaddr *)&address, sizeof address) == 0)
        copy_both_ways(client, remote);
    _exit(0);
}

static int listen_at(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 128) < 0)
        return -1;
    return listener;
}

static pid_t start(char **words)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing > 0)
        dup2(nothing, 0);
    setsid();
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

int main(int count, char **words)
{
    if (count < 5) {
        fprintf(stderr, "usage: forward SOCKET PORT STOP WORD...\n");
        return FAILED;
    }
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_at(atoi(words[2]));
    if (listener < 0) {
        fprintf(stderr, "forward: port %s: %s\n", words[2], strerror(errno));
        return errno == EADDRINUSE ? TAKEN : FAILED;
    }
    pid_t mother = getpid(), child = start(words + 4);
    if (child < 0)
        return FAILED;
    for (;;) {
        struct pollfd wanted = {listener, POLLIN, 0};
        int status, ready = poll(&wanted, 1, 20);
        for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (ended != child)
                continue;
            kill(-child, SIGKILL);
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
        if (access(words[3], F_OK) == 0) {
            kill(-child, SIGKILL);
            return STOPPED;
        }
        if (ready <= 0)
            continue;
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            continue;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != mother)
                _exit(0);
            close(listener);
            serve(client, words[1]);
        }
        close(client);
    }
}
