// SPDX-License-Identifier: Apache-2.0
// What is generated from the description of a config struct: JSON Schema for editors, the reference page, parameter lists.
#pragma once

#include <string>
#include <vector>

#include "sim/config_read.h"

namespace sim {

/// One leaf of a config struct, as users address it. Elements of lists and maps are shown as "[]" and "<name>".
struct Parameter {
  std::string path, type, initial, range, doc;
  Provenance provenance{};
};
/// All leaves, in the order of fields().
std::vector<Parameter> list_parameters(const TypeInfo& type);

struct SchemaOptions {
  std::string title, id;
  /// A document that is merged with others need not be complete by itself; elements of its lists still must be.
  bool partial = true;
  /// Members that the loader consumes before binding; each is a string, or a list of strings.
  struct Extra {
    std::string name, meaning;
    bool list = false;
  };
  std::vector<Extra> extra;
};
/// JSON Schema (draft 7, which editors know best) that accepts what the binding accepts.
Json json_schema(const TypeInfo& type, const SchemaOptions& options);

/// Tables of path, type, default, range, meaning and provenance, one section per top-level member.
std::string markdown_reference(const TypeInfo& type, const std::string& heading, const std::string& introduction);

}  // namespace sim
