// SPDX-License-Identifier: Apache-2.0
// A JSON tree whose every value knows where it came from. Configurations, results and schemas are trees of this type;
// text is read by parse_json() in sim/config_json.h. Printing is deterministic: the same tree gives the same bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sim {

/// Where a value was written: a file with line and column (both from 1; columns count characters), or a command-line
/// flag (line 0). A value made by the program has no source.
struct Origin {
  std::shared_ptr<const std::string> source;
  std::uint32_t line = 0, column = 0;
  /// "file.json:3:14", "--set a.b=1", or "" when there is no source.
  std::string text() const;
};

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  ///< in the order of the text; keys are unique

  // Defined below, where Member is complete.
  Json();
  Json(std::nullptr_t);
  Json(bool b);
  Json(double d);
  Json(std::string s);
  Json(std::string_view s);
  Json(const char* s);
  template <std::integral I>
  requires(!std::same_as<I, bool>) Json(I i);
  static Json array();
  static Json object();

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const {
    return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<std::uint64_t>(value_);
  }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  bool boolean() const { return std::get<bool>(value_); }
  double number() const;
  /// The value when it is a whole number that fits the type (12, 1e3), else nothing.
  std::optional<std::int64_t> as_int64() const;
  std::optional<std::uint64_t> as_uint64() const;
  const std::string& string() const { return std::get<std::string>(value_); }
  const Array& items() const { return std::get<Array>(value_); }
  Array& items() { return std::get<Array>(value_); }
  const Object& members() const { return std::get<Object>(value_); }
  Object& members() { return std::get<Object>(value_); }

  /// The member of that key, nullptr if there is none or this is not an object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  /// The member of that key, made (as null) when missing. A null value becomes an object first.
  Json& operator[](std::string_view key);
  void erase(std::string_view key);
  /// Appends; a null value becomes an array first.
  void push_back(Json v);

  /// The value at an RFC 6901 pointer ("/workloads/0/name"), nullptr if nothing is there. `pointer` must be valid.
  const Json* at(std::string_view pointer) const;
  /// What is wrong with a JSON pointer, empty if it is well formed.
  static std::string pointer_error(std::string_view pointer);

  /// Same JSON value; numbers compare by value (1 equals 1.0), objects without regard to order. Origins do not count.
  bool operator==(const Json& o) const;

  /// JSON text, two spaces per level; arrays and objects that fit into `width` columns stay on one line.
  std::string dump(std::size_t width = 110) const;
  /// JSON text on one line.
  std::string compact() const;
  /// For messages: "the number 250", "the string \"abc\"", "a list", …
  std::string describe() const;

  Origin origin;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
  Origin key_origin;
};

inline Json::Json() = default;
inline Json::Json(std::nullptr_t) {}
inline Json::Json(bool b) : value_(b) {}
inline Json::Json(double d) : value_(d) {}
inline Json::Json(std::string s) : value_(std::move(s)) {}
inline Json::Json(std::string_view s) : value_(std::string(s)) {}
inline Json::Json(const char* s) : value_(std::string(s)) {}
template <std::integral I>
requires(!std::same_as<I, bool>) Json::Json(I i) {
  if (i < 0) value_ = static_cast<std::int64_t>(i);
  else value_ = static_cast<std::uint64_t>(i);
}
inline Json Json::array() {
  Json j;
  j.value_ = Array{};
  return j;
}
inline Json Json::object() {
  Json j;
  j.value_ = Object{};
  return j;
}

/// Puts `over` on top of `base`: objects merge key by key, everything else replaces. Origins follow the values.
void merge(Json& base, const Json& over);

/// The candidate nearest to `word` by edit distance (a swap of neighbours counts as one), empty if none is near enough
/// to be what was meant.
std::string_view nearest(std::string_view word, const std::vector<std::string>& candidates);
/// "; did you mean \"x\"?" or "" when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
/// "a", "b" or "c" in quotes and in order.
std::string quoted_list(const std::vector<std::string>& words);

}  // namespace sim
