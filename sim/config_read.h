// SPDX-License-Identifier: Apache-2.0
// Binding of config structs to JSON trees through their fields(): read_config() fills a struct and reports every mistake,
// to_json() gives the effective values back, describe_config() gives names, types, defaults, ranges, meaning and
// provenance for the reference page and the JSON Schema. Model headers need sim/config.h only, never this header.
#pragma once

#include <algorithm>
#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/config.h"
#include "sim/config_json.h"
#include "sim/located.h"
#include "sim/units.h"

namespace sim {

/// What a field may hold, as the schema and the reference page see it.
struct TypeInfo {
  enum class Kind { time, bytes, rate, boolean, integer, number, string, enumeration, list, map, structure, any };
  Kind kind = Kind::any;
  std::vector<std::string> choices;         ///< enumeration
  double min = 0, max = 0;                  ///< integer: what the type can hold
  std::shared_ptr<const TypeInfo> element;  ///< list, map
  std::vector<struct FieldInfo> fields;     ///< structure; empty when the structure contains itself or `like` is set
  std::string like;                         ///< structure: path of the member that describes the same structure
  /// "time", "list of integers", "one of a, b".
  std::string text() const;
};

struct FieldInfo {
  std::string name, doc;
  TypeInfo type;
  Provenance provenance{};
  std::optional<Range> range;
  Json initial;           ///< default value; null for required and for absent optional fields
  bool optional = false;  ///< std::optional: null means absent
};

/// "1 to 64", "at least 4 KiB", "up to 1 s"; empty when the range says nothing.
std::string range_text(const Range& range, TypeInfo::Kind kind);

namespace config {

struct Probe {
  template <class T>
  void operator()(const char*, T&&, const char*, Provenance, Range = {}) const {}
};
template <class T>
concept Structure = requires(T& t, Probe p) {
  T::fields(t, p);
};
template <class T>
concept Enumeration = std::is_enum_v<T>;
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

template <class T>
struct IsVector : std::false_type {};
template <class X>
struct IsVector<std::vector<X>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class X>
struct IsOptional<std::optional<X>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class X>
struct IsMap<std::map<std::string, X>> : std::true_type {};

template <Enumeration E>
std::vector<std::string> choices() {
  std::vector<std::string> out;
  for (const auto& [value, name] : EnumNames<E>::values) out.emplace_back(name);
  return out;
}

/// State of one read: the errors and the path of the value under way.
class ReadContext {
 public:
  ReadContext(ConfigErrors& errors, std::string path) : errors_(errors), path_(std::move(path)) {}
  void fail(const Origin& where, std::string message) { errors_.add(where, path_, std::move(message)); }
  void expected(const Json& got, const std::string& what) {
    fail(got.origin, "expected " + what + ", got " + got.describe());
  }

  bool read(const Json& j, Picos& out);
  bool read(const Json& j, Bytes& out);
  bool read(const Json& j, BitRate& out);
  bool read(const Json& j, bool& out);
  bool read(const Json& j, double& out);
  bool read(const Json& j, std::string& out);
  bool read_signed(const Json& j, std::int64_t& out, std::int64_t min, std::int64_t max);
  bool read_unsigned(const Json& j, std::uint64_t& out, std::uint64_t max);
  /// Index into the choices, reported and nothing when it is none of them.
  std::optional<std::size_t> read_choice(const Json& j, const std::vector<std::string>& names);
  void check_range(const Json& j, double value, const Range& range, TypeInfo::Kind kind);
  void unknown_key(const Json::Member& m, const std::vector<std::string>& known);

  /// Extends the path for the life of the object.
  class Step {
   public:
    Step(ReadContext& c, std::string_view key) : context_(c), size_(c.path_.size()) {
      c.path_ = join_path(c.path_, key);
    }
    ~Step() { context_.path_.resize(size_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    ReadContext& context_;
    std::size_t size_;
  };

 private:
  ConfigErrors& errors_;
  std::string path_;
};

template <class T>
void read_value(const Json& j, T& out, ReadContext& context, const Range& range);

struct Reader {
  const Json& object;
  ReadContext& context;
  std::vector<std::string>& known;

  template <class T>
  void operator()(const char* name, T& field, const char*, Provenance provenance, Range range = {}) const {
    known.emplace_back(name);
    const typename ReadContext::Step step(context, name);
    if (const Json* j = object.find(name)) read_value(*j, field, context, range);
    else if (provenance.kind == Provenance::required) context.fail(object.origin, "is missing and has no default");
  }
};

template <Structure T>
void read_structure(const Json& j, T& out, ReadContext& context) {
  if (!j.is_object()) return context.expected(j, "an object");
  std::vector<std::string> known;
  if constexpr (requires { requires std::same_as<decltype(out.origin), Origin>; }) out.origin = j.origin;
  T::fields(out, Reader{j, context, known});
  for (const Json::Member& m : j.members())
    if (std::find(known.begin(), known.end(), m.key) == known.end()) context.unknown_key(m, known);
  const auto fail = [&](std::string_view field, std::string message) {
    if (field.empty()) return context.fail(j.origin, std::move(message));
    const Json* at = j.find(field);
    const typename ReadContext::Step step(context, field);
    context.fail(at != nullptr ? at->origin : j.origin, std::move(message));
  };
  if constexpr (requires { out.check(fail); }) out.check(fail);
}

template <class T>
void read_value(const Json& j, T& out, ReadContext& context, const Range& range) {
  if constexpr (std::same_as<T, Json>) {
    out = j;
  } else if constexpr (std::same_as<T, Located>) {
    if (context.read(j, out.text)) out.origin = j.origin;
  } else if constexpr (Structure<T>) {
    read_structure(j, out, context);
  } else if constexpr (IsOptional<T>::value) {
    if (j.is_null()) {
      out.reset();
      return;
    }
    if (!out) out.emplace();
    read_value(j, *out, context, range);
  } else if constexpr (IsVector<T>::value) {
    if (!j.is_array()) return context.expected(j, "a list");
    out.clear();
    for (std::size_t i = 0; i < j.items().size(); ++i) {
      const typename ReadContext::Step step(context, std::to_string(i));
      typename T::value_type element{};
      read_value(j.items()[i], element, context, range);
      out.push_back(std::move(element));
    }
  } else if constexpr (IsMap<T>::value) {
    if (!j.is_object()) return context.expected(j, "an object");
    for (const Json::Member& m : j.members()) {
      const typename ReadContext::Step step(context, m.key);
      read_value(m.value, out[m.key], context, range);
    }
  } else if constexpr (Enumeration<T>) {
    if (const auto i = context.read_choice(j, choices<T>())) out = EnumNames<T>::values[*i].first;
  } else if constexpr (Integer<T>) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_signed_v<T>) {
      std::int64_t v = 0;
      if (!context.read_signed(j, v, Limits::min(), Limits::max())) return;
      out = static_cast<T>(v);
    } else {
      std::uint64_t v = 0;
      if (!context.read_unsigned(j, v, Limits::max())) return;
      out = static_cast<T>(v);
    }
    context.check_range(j, static_cast<double>(out), range, TypeInfo::Kind::integer);
  } else {
    if (!context.read(j, out)) return;
    if constexpr (std::same_as<T, Picos>)
      context.check_range(j, static_cast<double>(out.n), range, TypeInfo::Kind::time);
    if constexpr (std::same_as<T, Bytes>)
      context.check_range(j, static_cast<double>(out.n), range, TypeInfo::Kind::bytes);
    if constexpr (std::same_as<T, BitRate>)
      context.check_range(j, static_cast<double>(out.bps), range, TypeInfo::Kind::rate);
    if constexpr (std::same_as<T, double>) context.check_range(j, out, range, TypeInfo::Kind::number);
  }
}

template <class T>
Json value_to_json(const T& value);

struct Writer {
  Json& object;
  template <class T>
  void operator()(const char* name, const T& field, const char*, Provenance, Range = {}) const {
    if constexpr (IsOptional<T>::value) {
      if (!field) return;
      object[name] = value_to_json(*field);
    } else {
      object[name] = value_to_json(field);
    }
  }
};

template <class T>
Json value_to_json(const T& value) {
  if constexpr (std::same_as<T, Json>) {
    return value;
  } else if constexpr (std::same_as<T, Located>) {
    return Json(value.text);
  } else if constexpr (Structure<T>) {
    Json out = Json::object();
    T::fields(value, Writer{out});
    return out;
  } else if constexpr (IsVector<T>::value) {
    Json out = Json::array();
    for (const auto& element : value) out.push_back(value_to_json<typename T::value_type>(element));
    return out;
  } else if constexpr (IsMap<T>::value) {
    Json out = Json::object();
    for (const auto& [key, element] : value) out[key] = value_to_json(element);
    return out;
  } else if constexpr (Enumeration<T>) {
    return Json(enum_name(value));
  } else if constexpr (std::same_as<T, Picos> || std::same_as<T, Bytes> || std::same_as<T, BitRate>) {
    return Json(to_string(value));
  } else {
    return Json(value);
  }
}

/// Chain of the structures being described, so that one that contains itself ends.
struct Nesting {
  const void* type;
  const Nesting* outer;
};
template <class T>
inline constexpr char kTypeTag = 0;

template <class T>
TypeInfo describe_type(const T& sample, const Nesting* outer);

struct Describer {
  std::vector<FieldInfo>& out;
  const Nesting* nesting;
  template <class T>
  void operator()(const char* name, const T& field, const char* doc, Provenance provenance, Range range = {}) const {
    FieldInfo f;
    f.name = name;
    f.doc = doc;
    f.provenance = provenance;
    if (range.min != Range{}.min || range.max != Range{}.max) f.range = range;
    if constexpr (IsOptional<T>::value) {
      f.optional = true;
      f.type = describe_type(field ? *field : typename T::value_type{}, nesting);
      if (field) f.initial = value_to_json(*field);
    } else {
      f.type = describe_type(field, nesting);
      if (provenance.kind != Provenance::required) f.initial = value_to_json(field);
    }
    out.push_back(std::move(f));
  }
};

template <class T>
TypeInfo describe_type(const T& sample, const Nesting* outer) {
  using Kind = TypeInfo::Kind;
  TypeInfo t;
  if constexpr (std::same_as<T, Json>) {
    t.kind = Kind::any;
  } else if constexpr (Structure<T>) {
    t.kind = Kind::structure;
    for (const Nesting* n = outer; n != nullptr; n = n->outer)
      if (n->type == &kTypeTag<T>) return t;
    const Nesting here{&kTypeTag<T>, outer};
    T::fields(sample, Describer{t.fields, &here});
  } else if constexpr (IsVector<T>::value) {
    t.kind = Kind::list;
    t.element = std::make_shared<TypeInfo>(describe_type(typename T::value_type{}, outer));
  } else if constexpr (IsMap<T>::value) {
    t.kind = Kind::map;
    t.element = std::make_shared<TypeInfo>(describe_type(typename T::mapped_type{}, outer));
  } else if constexpr (Enumeration<T>) {
    t.kind = Kind::enumeration;
    t.choices = choices<T>();
  } else if constexpr (std::same_as<T, Picos>) {
    t.kind = Kind::time;
  } else if constexpr (std::same_as<T, Bytes>) {
    t.kind = Kind::bytes;
  } else if constexpr (std::same_as<T, BitRate>) {
    t.kind = Kind::rate;
  } else if constexpr (std::same_as<T, bool>) {
    t.kind = Kind::boolean;
  } else if constexpr (Integer<T>) {
    t.kind = Kind::integer;
    t.min = static_cast<double>(std::numeric_limits<T>::min());
    t.max = static_cast<double>(std::numeric_limits<T>::max());
  } else if constexpr (std::same_as<T, double>) {
    t.kind = Kind::number;
  } else {
    static_assert(std::same_as<T, std::string> || std::same_as<T, Located>,
                  "a config field has a type that the binding does not know");
    t.kind = Kind::string;
  }
  return t;
}

}  // namespace config

/// Fills `out` (which holds the defaults) from `j` and adds every mistake to `errors`; `path` is where `j` stands in its
/// document. Fields with mistakes keep their defaults.
template <config::Structure T>
void read_config(const Json& j, T& out, ConfigErrors& errors, std::string path = {}) {
  config::ReadContext context(errors, std::move(path));
  config::read_structure(j, out, context);
}

/// The effective values of a config struct; reading them back gives the same struct.
template <class T>
Json to_json(const T& value) {
  return config::value_to_json(value);
}

/// Everything that is known about a config struct, with the defaults of a default-constructed T.
template <config::Structure T>
TypeInfo describe_config() {
  return config::describe_type(T{}, nullptr);
}

}  // namespace sim
