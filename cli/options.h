// SPDX-License-Identifier: Apache-2.0
// Parsing of one command's options with Boost.Program_options, and the mistakes of the command line.
#pragma once

#include <boost/program_options.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace cli {

/// Exit codes, documented in `rdmasim --help`.
enum Exit : int { kOk = 0, kUnmet = 1, kUserError = 2, kBug = 3, kDeadlock = 4, kInterrupted = 130 };

/// A mistake of the command line; the message ends with a hint where there is one.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Options and positional arguments of one command.
class Options {
 public:
  /// `usage` is the line after "usage: "; `argument` names the positional argument ("" = none) and `most` how many of them
  /// there may be (-1 = any number).
  Options(std::string usage, std::string summary, std::string argument, int most);

  boost::program_options::options_description_easy_init add() { return visible_.add_options(); }
  boost::program_options::options_description_easy_init add_hidden() { return hidden_.add_options(); }
  /// Prints help and returns false when --help was given. Throws UsageError.
  bool parse(const std::vector<std::string>& arguments);

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  template <class T>
  const T& get(const std::string& name) const {
    return values_[name].as<T>();
  }
  /// Values of a repeatable option, none if it was not given.
  std::vector<std::string> all(const std::string& name) const;
  const std::vector<std::string>& positional() const { return positional_; }
  /// The positional arguments; throws UsageError unless there is at least one.
  const std::vector<std::string>& needed_positional() const;

 private:
  [[noreturn]] void unknown(const std::string& option) const;
  /// "run" of "rdmasim run FILE [OPTIONS]".
  std::string command() const;

  std::string usage_, summary_, argument_;
  int most_;
  boost::program_options::options_description visible_{"options"}, hidden_;
  boost::program_options::variables_map values_;
  std::vector<std::string> positional_;
};

/// "; expected a or b" list of words in a message about one of them.
std::string choose(const std::string& what, const std::string& given, const std::vector<std::string>& known);

}  // namespace cli
