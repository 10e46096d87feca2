// SPDX-License-Identifier: Apache-2.0
// Conditions between the values of a sweep's point, as "cqe >= depth / cq_mod and mode != 'event'".
//
//   condition  = conjunct { "or" conjunct }          operand = term { ("+" | "-") term }
//   conjunct   = negation { "and" negation }         term    = factor { ("*" | "/") factor }
//   negation   = [ "not" ] comparison                factor  = [ "-" ] ( number [ unit ] | 'text' | true | false
//   comparison = operand [ op operand ]                        | name | "floor" "(" operand ")" | "(" condition ")" )
//   op         = "==" | "!=" | "<" | "<=" | ">" | ">="
//
// Times, sizes and rates compare and add up among themselves only; their ratio is a number. A value that a point lacks makes every
// comparison with it false.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/sweep_value.h"

namespace experiment {

/// A condition that cannot be read or that compares what has no order; `column` counts from 1.
struct ConditionError : std::runtime_error {
  ConditionError(std::size_t at, const std::string& message)
      : std::runtime_error("column " + std::to_string(at) + ": " + message), column(at) {}
  std::size_t column;
};

class Condition {
 public:
  /// What a name stands for; nothing for a value that the point lacks.
  using Lookup = std::function<std::optional<SweepValue>(const std::string& name)>;
  struct Name {
    std::string text;
    std::size_t column;
  };

  /// Throws ConditionError.
  static Condition parse(std::string_view text);
  /// Throws ConditionError for kinds that do not go together.
  bool holds(const Lookup& lookup) const;
  /// The names in it, in order, for checks before anything runs.
  const std::vector<Name>& names() const { return names_; }
  const std::string& text() const { return text_; }

  struct Node;

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
  std::vector<Name> names_;
};

}  // namespace experiment
