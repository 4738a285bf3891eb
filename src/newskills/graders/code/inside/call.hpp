// SPDX-License-Identifier: Apache-2.0
// Values of JSON as arguments of a C++ function, and what it returns as JSON. The types are those of the function.
#include <bits/stdc++.h>
#include <fcntl.h>
#include <unistd.h>
using namespace std;

namespace ns_json {
struct Text {
  const char *at, *end;
  void blank() { while (at < end && strchr(" \t\r\n", *at)) ++at; }
  bool next(char sign) { blank(); return at < end && *at == sign ? ++at, true : false; }
  void need(char sign) { if (!next(sign)) throw runtime_error("the input is not as the function wants it"); }
  string plain() { blank(); auto from = at; while (at < end && !strchr(",]} \t\r\n", *at)) ++at; return string(from, at); }
};

inline void read(Text &text, string &value) {
  text.need('"');
  for (; text.at < text.end && *text.at != '"'; ++text.at) {
    if (*text.at != '\\') { value += *text.at; continue; }
    switch (*++text.at) {
      case 'n': value += '\n'; break;
      case 't': value += '\t'; break;
      case 'r': value += '\r'; break;
      case 'b': value += '\b'; break;
      case 'f': value += '\f'; break;
      case 'u': {
        int code = stoi(string(text.at + 1, text.at + 5), nullptr, 16);
        text.at += 4;
        if (code < 0x80) value += char(code);
        else if (code < 0x800) { value += char(0xC0 | code >> 6); value += char(0x80 | (code & 63)); }
        else { value += char(0xE0 | code >> 12); value += char(0x80 | (code >> 6 & 63)); value += char(0x80 | (code & 63)); }
        break;
      }
      default: value += *text.at;
    }
  }
  text.need('"');
}
inline void read(Text &text, char &value) { string one; read(text, one); value = one.size() == 1 ? one[0] : throw runtime_error("no character"); }
inline void read(Text &text, bool &value) { value = text.plain() == "true"; }
template <class T> enable_if_t<is_integral_v<T>> read(Text &text, T &value) {
  auto told = text.plain();
  value = is_signed_v<T> ? T(stoll(told)) : T(stoull(told));
}
template <class T> enable_if_t<is_floating_point_v<T>> read(Text &text, T &value) { value = T(stold(text.plain())); }
template <class T> void read(Text &text, vector<T> &value);
template <class A, class B> void read(Text &text, pair<A, B> &value) {
  text.need('['); read(text, value.first); text.need(','); read(text, value.second); text.need(']');
}
template <class T> void read(Text &text, vector<T> &value) {
  text.need('[');
  if (text.next(']')) return;
  do { T item{}; read(text, item); value.push_back(move(item)); } while (text.next(','));
  text.need(']');
}

inline void write(string &out, const string &value) {
  out += '"';
  for (unsigned char sign : value) {
    char told[8];
    if (sign == '"' || sign == '\\') { out += '\\'; out += char(sign); }
    else if (sign < 32) { snprintf(told, sizeof told, "\\u%04x", sign); out += told; }
    else out += char(sign);
  }
  out += '"';
}
inline void write(string &out, char value) { write(out, string(1, value)); }
inline void write(string &out, bool value) { out += value ? "true" : "false"; }
template <class T> enable_if_t<is_integral_v<T>> write(string &out, T value) { out += to_string(value); }
template <class T> enable_if_t<is_floating_point_v<T>> write(string &out, T value) {
  char told[64];
  snprintf(told, sizeof told, "%.17g", double(value));
  out += told;
}
template <class A, class B> void write(string &out, const pair<A, B> &value) {
  out += '['; write(out, value.first); out += ','; write(out, value.second); out += ']';
}
template <class T> void write(string &out, const vector<T> &value) {
  out += '[';
  for (size_t at = 0; at < value.size(); ++at) { if (at) out += ','; T item = value[at]; write(out, item); }
  out += ']';
}

template <class F> struct Asked;
template <class R, class... A> struct Asked<R (*)(A...)> { using Result = R; using Values = tuple<decay_t<A>...>; };
template <class R, class C, class... A> struct Asked<R (C::*)(A...)> : Asked<R (*)(A...)> {};
template <class R, class C, class... A> struct Asked<R (C::*)(A...) const> : Asked<R (*)(A...)> {};

// Calls with one value per line of the input. What the function prints is not shown.
template <class F, class Call> int run(Call call) {
  string input((istreambuf_iterator<char>(cin)), {}), out, line;
  int shown = dup(1);
  dup2(open("/dev/null", O_WRONLY), 1);
  istringstream lines(input);
  auto value = [&](auto &one) {
    while (getline(lines, line) && line.find_first_not_of(" \t\r") == string::npos) {}
    Text text{line.data(), line.data() + line.size()};
    read(text, one);
    return 0;
  };
  typename Asked<F>::Values values{};
  apply([&](auto &...each) { (void)initializer_list<int>{value(each)...}; }, values);
  if constexpr (is_void_v<typename Asked<F>::Result>) {
    apply(call, values);
    write(out, get<0>(values));
  } else {
    typename Asked<F>::Result result = apply(call, values);
    write(out, result);
  }
  for (size_t done = 0; done < out.size();) {
    auto wrote = ::write(shown, out.data() + done, out.size() - done);
    if (wrote <= 0) return 1;
    done += size_t(wrote);
  }
  _exit(0);
}
}  // namespace ns_json
