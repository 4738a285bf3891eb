// SPDX-License-Identifier: Apache-2.0
// Calls of a function over two pipes: the tests write to 3 and read from 4, the answer the other way round.
// A message is its length and its text; what is read of it may be hostile. NS_MAP and the like: types that the head
// has, so that no more is compiled.
#ifdef NS_ARRAY
#include <array>
#endif
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#ifdef NS_DEQUE
#include <deque>
#endif
#ifdef NS_LIST
#include <list>
#endif
#ifdef NS_MAP
#include <map>
#endif
#ifdef NS_OPTIONAL
#include <optional>
#endif
#ifdef NS_SET
#include <set>
#endif
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#ifdef NS_UNORDERED_MAP
#include <unordered_map>
#endif
#ifdef NS_UNORDERED_SET
#include <unordered_set>
#endif
#include <utility>
#include <vector>

namespace ns_wire {
[[noreturn]] inline void end(const char *why) {
  std::fprintf(stderr, "ns: %s\n", why);
  std::fflush(stderr);
  std::_Exit(70);
}

struct Reader {
  std::string text;
  std::size_t at = 0;
  std::string word() {
    auto stop = text.find(' ', at);
    if (stop == std::string::npos || stop - at > 64) throw std::runtime_error("no word");
    auto from = at;
    at = stop + 1;
    return text.substr(from, stop - from);
  }
  std::size_t count() {
    auto number = std::stoull(word());
    if (number > text.size() - at) throw std::runtime_error("no count");
    return std::size_t(number);
  }
};

struct Pipe {
  std::FILE *in, *out;
  void send(const std::string &text) {
    std::fprintf(out, "%zu ", text.size());
    std::fwrite(text.data(), 1, text.size(), out);
    std::fflush(out);
  }
  bool receive(Reader &reader) {
    unsigned long long size;
    char blank;
    if (std::fscanf(in, "%15llu%c", &size, &blank) != 2 || size > (1u << 28)) return false;
    reader.text.resize(std::size_t(size));
    reader.at = 0;
    return std::fread(&reader.text[0], 1, std::size_t(size), in) == size;
  }
};
extern "C" std::FILE *fdopen(int, const char *) noexcept;

template <class T, class = void> struct Value;

template <class T> struct Value<T, std::enable_if_t<std::is_integral_v<T>>> {
  static void put(std::string &out, T value) { out += std::to_string(+value); out += ' '; }
  static void take(Reader &in, T &value) {
    auto told = in.word();
    value = std::is_signed_v<T> ? T(std::stoll(told)) : T(std::stoull(told));
  }
};
template <class T> struct Value<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static void put(std::string &out, T value) {
    char told[96];
    std::snprintf(told, sizeof told, "%La ", static_cast<long double>(value));
    out += told;
  }
  static void take(Reader &in, T &value) {
    value = T(std::strtold(in.word().c_str(), nullptr));
#ifdef NS_NO_NAN
    if (std::isnan(value)) throw std::runtime_error("not a number is nowhere near one");
#endif
  }
};
template <> struct Value<std::string> {
  static void put(std::string &out, const std::string &value) { out += std::to_string(value.size()) + ' ' + value; }
  static void take(Reader &in, std::string &value) {
    auto size = in.count();
    value = in.text.substr(in.at, size);
    in.at += size;
  }
};
#ifdef NS_OPTIONAL
template <class T> struct Value<std::optional<T>> {
  static void put(std::string &out, const std::optional<T> &value) {
    out += value ? "1 " : "0 ";
    if (value) Value<T>::put(out, *value);
  }
  static void take(Reader &in, std::optional<T> &value) {
    value.reset();
    if (in.word() == "0") return;
    T item{};
    Value<T>::take(in, item);
    value = std::move(item);
  }
};
#endif
template <class A, class B> struct Value<std::pair<A, B>> {
  static void put(std::string &out, const std::pair<A, B> &value) {
    Value<std::remove_const_t<A>>::put(out, value.first);
    Value<B>::put(out, value.second);
  }
  static void take(Reader &in, std::pair<A, B> &value) {
    Value<A>::take(in, value.first);
    Value<B>::take(in, value.second);
  }
};
template <class... A> struct Value<std::tuple<A...>> {
  static void put(std::string &out, const std::tuple<A...> &value) {
    std::apply([&](auto &...each) { (Value<std::decay_t<decltype(each)>>::put(out, each), ...); }, value);
  }
  static void take(Reader &in, std::tuple<A...> &value) {
    std::apply([&](auto &...each) { (Value<std::decay_t<decltype(each)>>::take(in, each), ...); }, value);
  }
};
#ifdef NS_ARRAY
template <class T, std::size_t N> struct Value<std::array<T, N>> {
  static void put(std::string &out, const std::array<T, N> &value) { for (auto &each : value) Value<T>::put(out, each); }
  static void take(Reader &in, std::array<T, N> &value) { for (auto &each : value) Value<T>::take(in, each); }
};
#endif
template <class C, class Item> struct Several {
  static void put(std::string &out, const C &value) {
    out += std::to_string(value.size()) + ' ';
    for (const auto &each : value) { Item item = each; Value<Item>::put(out, item); }
  }
  static void take(Reader &in, C &value) {
    value.clear();
    for (auto left = in.count(); left; --left) {
      Item item{};
      Value<Item>::take(in, item);
      value.insert(value.end(), std::move(item));
    }
  }
};
template <class T> struct Value<std::vector<T>> : Several<std::vector<T>, T> {};
#ifdef NS_LIST
template <class T> struct Value<std::list<T>> : Several<std::list<T>, T> {};
#endif
#ifdef NS_DEQUE
template <class T> struct Value<std::deque<T>> : Several<std::deque<T>, T> {};
#endif
#ifdef NS_SET
template <class T> struct Value<std::set<T>> : Several<std::set<T>, T> {};
template <class T> struct Value<std::multiset<T>> : Several<std::multiset<T>, T> {};
#endif
#ifdef NS_MAP
template <class K, class V> struct Value<std::map<K, V>> : Several<std::map<K, V>, std::pair<K, V>> {};
#endif
#ifdef NS_UNORDERED_SET
template <class T> struct Value<std::unordered_set<T>> : Several<std::unordered_set<T>, T> {
  static void take(Reader &in, std::unordered_set<T> &value) {
    std::vector<T> items;
    Value<std::vector<T>>::take(in, items);
    value = std::unordered_set<T>(items.begin(), items.end());
  }
};
#endif
#ifdef NS_UNORDERED_MAP
template <class K, class V> struct Value<std::unordered_map<K, V>> : Several<std::unordered_map<K, V>, std::pair<K, V>> {
  static void take(Reader &in, std::unordered_map<K, V> &value) {
    std::vector<std::pair<K, V>> items;
    Value<std::vector<std::pair<K, V>>>::take(in, items);
    value = std::unordered_map<K, V>(items.begin(), items.end());
  }
};
#endif

template <class T> constexpr bool is_written = std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;

// An exception of the answer's, as the tests may expect it.
[[noreturn]] inline void raise(const std::string &kind) {
  if (kind == "invalid_argument") throw std::invalid_argument("the answer has thrown it");
  if (kind == "out_of_range") throw std::out_of_range("the answer has thrown it");
  if (kind == "logic_error") throw std::logic_error("the answer has thrown it");
  throw std::runtime_error("the answer has thrown an exception");
}

// What a function of this type takes and returns. Arguments that it may write to travel back.
template <class F> struct Function;
template <class R, class... A> struct Function<R (*)(A...)> {
  using Values = std::tuple<std::decay_t<A>...>;
  template <class T> static void put_written(std::string &out, T &value, std::true_type) { Value<T>::put(out, value); }
  template <class T> static void put_written(std::string &, T &, std::false_type) {}
  template <class T> static void take_written(Reader &in, T &value, std::true_type) { Value<std::decay_t<T>>::take(in, value); }
  template <class T> static void take_written(Reader &, T &, std::false_type) {}

  // The tests' side.
  template <class... T> static R call(T &...given) {
    static Pipe pipe{fdopen(4, "rb"), fdopen(3, "wb")};
    std::string out;
    (Value<std::decay_t<A>>::put(out, given), ...);
    pipe.send(out);
    Reader in;
    if (!pipe.receive(in)) end("the answer has ended");
    std::string kind;
    try {
      kind = in.word();
    } catch (const std::exception &) {
      end("the answer's value cannot be read");
    }
    if (kind != "value") raise(kind);
    try {
      if constexpr (std::is_void_v<R>) {
        (take_written(in, given, std::bool_constant<is_written<A>>()), ...);
      } else {
        std::decay_t<R> result{};
        Value<std::decay_t<R>>::take(in, result);
        (take_written(in, given, std::bool_constant<is_written<A>>()), ...);
        return result;
      }
    } catch (const std::exception &) {
      end("the answer's value cannot be read");
    }
  }

  // The answer's side: serves until the tests are gone.
  template <class Call> static int serve(Call call) {
    Pipe pipe{fdopen(3, "rb"), fdopen(4, "wb")};
    Reader in;
    while (pipe.receive(in)) {
      std::string out = "value ";
      try {
        Values values{};
        Value<Values>::take(in, values);
        if constexpr (std::is_void_v<R>) {
          std::apply(call, values);
        } else {
          std::decay_t<R> result = std::apply(call, values);
          Value<std::decay_t<R>>::put(out, result);
        }
        std::apply([&](auto &...each) { (put_written(out, each, std::bool_constant<is_written<A>>()), ...); }, values);
      } catch (const std::invalid_argument &) {
        out = "invalid_argument ";
      } catch (const std::out_of_range &) {
        out = "out_of_range ";
      } catch (const std::logic_error &) {
        out = "logic_error ";
      } catch (const std::exception &) {
        out = "runtime_error ";
      } catch (...) {
        out = "other ";
      }
      pipe.send(out);
    }
    return 0;
  }

  // Whether all of this can be carried: compiled with the tests, so that it is never held against an answer.
  static int check() {
    Reader in;
    std::string out;
    Values values{};
    Value<Values>::put(out, values);
    Value<Values>::take(in, values);
    return 0;
  }
};
}  // namespace ns_wire
