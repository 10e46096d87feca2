// SPDX-License-Identifier: Apache-2.0
// JSON Schema follows draft 7 (json-schema.org). Quantities are strings with a pattern; their ranges are in the text only,
// because a schema cannot compare "2 us" with "500 ns".
#include "sim/config_schema.h"

#include <algorithm>
#include <cmath>

namespace sim {
namespace {

const char* provenance_word(Provenance p) {
  switch (p.kind) {
    case Provenance::measured:
      return "measured";
    case Provenance::spec:
      return "spec";
    case Provenance::assumed:
      return "assumed";
    case Provenance::required:
      return "required";
  }
  return "";
}

void collect(const TypeInfo& type, const std::string& path, std::vector<Parameter>& out);

void collect_field(const FieldInfo& f, const std::string& path, std::vector<Parameter>& out) {
  const TypeInfo* inner = &f.type;
  std::string below = path;
  while (inner->kind == TypeInfo::Kind::list || inner->kind == TypeInfo::Kind::map) {
    below += inner->kind == TypeInfo::Kind::list ? "[]" : ".<name>";
    inner = inner->element.get();
  }
  const bool nested = inner->kind == TypeInfo::Kind::structure;
  if (!nested || inner != &f.type || inner->fields.empty()) {
    std::string initial = f.provenance.kind == Provenance::required ? ""
                          : f.optional && f.initial.is_null()       ? "absent"
                                                                    : f.initial.compact();
    if (f.initial.is_string()) initial = f.initial.string().empty() ? "\"\"" : f.initial.string();
    if (initial.size() > 60) initial = "see the members";
    out.push_back(
        {path, f.type.text(), initial, f.range ? range_text(*f.range, inner->kind) : "", f.doc, f.provenance});
  }
  if (nested) collect(*inner, below, out);
}

void collect(const TypeInfo& type, const std::string& path, std::vector<Parameter>& out) {
  for (const FieldInfo& f : type.fields) collect_field(f, path.empty() ? f.name : path + "." + f.name, out);
}

Json with_type(const char* type) {
  Json j = Json::object();
  j["type"] = type;
  return j;
}

Json quantity(const char* units, const char* example) {
  Json j = with_type("string");
  j["pattern"] = std::string("^([0-9]+\\.?[0-9]*|\\.[0-9]+) *(") + units + ")$";
  j["examples"].push_back(example);
  return j;
}

Json structure(const TypeInfo& type, bool partial);

Json schema_of(const TypeInfo& type, const std::optional<Range>& range) {
  using Kind = TypeInfo::Kind;
  switch (type.kind) {
    case Kind::time:
      return quantity("ps|ns|us|ms|s", "250 ns");
    case Kind::bytes:
      return quantity("B|KiB|MiB|GiB|kB|MB|GB", "4 KiB");
    case Kind::rate:
      return quantity("b/s|kb/s|Mb/s|Gb/s|bps|kbps|Mbps|Gbps", "100 Gb/s");
    case Kind::boolean:
      return with_type("boolean");
    case Kind::string:
      return with_type("string");
    case Kind::any:
      return Json::object();
    case Kind::structure:
      if (!type.like.empty()) {
        Json j = Json::object();
        j["$ref"] = "#/properties/" + type.like;
        return j;
      }
      return type.fields.empty() ? with_type("object") : structure(type, false);
    case Kind::integer:
    case Kind::number: {
      Json j = with_type(type.kind == Kind::integer ? "integer" : "number");
      const bool whole = type.kind == Kind::integer;
      const auto bound = [&](double d) {
        return whole && std::abs(d) < 9e15 ? Json(static_cast<std::int64_t>(d)) : Json(d);
      };
      const double low = std::max(range ? range->min : Range{}.min, whole ? type.min : Range{}.min);
      const double high = std::min(range ? range->max : Range{}.max, whole ? type.max : Range{}.max);
      if (low != Range{}.min) j["minimum"] = bound(low);
      if (high != Range{}.max) j["maximum"] = bound(high);
      return j;
    }
    case Kind::enumeration: {
      Json j = Json::object();
      for (const std::string& c : type.choices) j["enum"].push_back(c);
      return j;
    }
    case Kind::list: {
      Json j = with_type("array");
      j["items"] = schema_of(*type.element, range);
      return j;
    }
    case Kind::map: {
      Json j = with_type("object");
      j["additionalProperties"] = schema_of(*type.element, range);
      return j;
    }
  }
  return Json::object();
}

Json structure(const TypeInfo& type, bool partial) {
  Json j = with_type("object");
  Json& properties = j["properties"] = Json::object();
  Json needed = Json::array();
  for (const FieldInfo& f : type.fields) {
    const bool inner = f.type.kind == TypeInfo::Kind::structure && !f.type.fields.empty();
    Json field = inner ? structure(f.type, partial) : schema_of(f.type, f.range);
    if (f.optional) {
      Json either = Json::object();
      either["anyOf"].push_back(std::move(field));
      either["anyOf"].push_back(with_type("null"));
      field = std::move(either);
    }
    if (f.type.kind == TypeInfo::Kind::time && f.initial == Json(to_string(kNever)))
      field["pattern"] = "^never$|" + field.find("pattern")->string();
    std::string text = f.doc;
    if (f.range) text += " (" + range_text(*f.range, f.type.kind) + ")";
    field["description"] = text;
    const bool composite = f.type.element != nullptr && f.type.element->kind == TypeInfo::Kind::structure;
    if (!inner && !composite && !f.initial.is_null()) field["default"] = f.initial;
    properties[f.name] = std::move(field);
    if (f.provenance.kind == Provenance::required) needed.push_back(f.name);
  }
  if (!partial && !needed.items().empty()) j["required"] = std::move(needed);
  j["additionalProperties"] = false;
  return j;
}

std::string cell(std::string text) {
  for (std::size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2) text.insert(i, 1, '\\');
  return text;
}

}  // namespace

std::vector<Parameter> list_parameters(const TypeInfo& type) {
  std::vector<Parameter> out;
  collect(type, {}, out);
  return out;
}

Json json_schema(const TypeInfo& type, const SchemaOptions& options) {
  Json j = Json::object();
  j["$schema"] = "http://json-schema.org/draft-07/schema#";
  if (!options.id.empty()) j["$id"] = options.id;
  j["title"] = options.title;
  Json body = structure(type, options.partial);
  Json properties = Json::object();
  for (const auto& [name, meaning, list] : options.extra) {
    Json field = with_type(list ? "array" : "string");
    if (list) field["items"] = with_type("string");
    field["description"] = meaning;
    properties[name] = std::move(field);
  }
  merge(properties, *body.find("properties"));
  body["properties"] = std::move(properties);
  merge(j, body);
  return j;
}

std::string markdown_reference(const TypeInfo& type, const std::string& heading, const std::string& introduction) {
  std::string out = "# " + heading + "\n\n" + introduction + "\n";
  std::string section;
  for (const Parameter& p : list_parameters(type)) {
    if (const std::string top = p.path.substr(0, p.path.find_first_of(".[")); top != section) {
      section = top;
      out += "\n## " + section +
             "\n\n| path | type | default | range | meaning | provenance |\n| --- | --- | --- | --- | --- | --- |\n";
    }
    std::string source = provenance_word(p.provenance);
    if (p.provenance.kind != Provenance::required && p.provenance.source[0] != '\0')
      source += std::string(": ") + p.provenance.source;
    out += "| `" + p.path + "` | " + cell(p.type) + " | " + cell(p.initial) + " | " + cell(p.range) + " | " +
           cell(p.doc) + " | " + cell(source) + " |\n";
  }
  return out;
}

}  // namespace sim
