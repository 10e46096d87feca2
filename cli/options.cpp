// SPDX-License-Identifier: Apache-2.0
// Boost guesses abbreviated options by default; that is off here, so that a typing error is never taken for an option.
#include "cli/options.h"

#include <iostream>

#include "cli/manual.h"
#include "sim/json.h"

namespace cli {
namespace po = boost::program_options;

Options::Options(std::string usage, std::string summary, std::string argument, int most)
    : usage_(std::move(usage)), summary_(std::move(summary)), argument_(std::move(argument)), most_(most) {
  add()("help,h", "show this help");
}

void Options::unknown(const std::string& option) const {
  std::vector<std::string> known;
  for (const auto& o : visible_.options()) known.push_back("--" + o->long_name());
  std::string name = option.substr(0, option.find('='));
  throw UsageError("unknown option " + name + sim::did_you_mean(name, known) + " (rdmasim " + command() +
                   " --help lists them)");
}

std::string Options::command() const {
  const std::size_t name = usage_.find(' ') + 1;
  return usage_.substr(name, usage_.find(' ', name) - name);
}

bool Options::parse(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments.front() == kManPart)
    return std::cout << man_part(usage_, summary_, visible_), false;
  if (arguments.size() == 1 && arguments.front() == kCompletionPart)
    return std::cout << completion_part(command(), visible_), false;
  po::options_description all;
  all.add(visible_).add(hidden_);
  po::options_description with_positional;
  with_positional.add(all);
  with_positional.add_options()("positional", po::value<std::vector<std::string>>(&positional_));
  po::positional_options_description positions;
  positions.add("positional", -1);
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    const auto parsed =
        po::command_line_parser(arguments).options(with_positional).positional(positions).style(style).run();
    po::store(parsed, values_);
    po::notify(values_);
  } catch (const po::unknown_option& e) {
    unknown(e.get_option_name());
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
  if (has("help")) {
    std::cout << "usage: " << usage_ << "\n\n" << summary_ << "\n\n" << visible_;
    return false;
  }
  if (most_ >= 0 && positional_.size() > static_cast<std::size_t>(most_))
    throw UsageError("unexpected argument \"" + positional_[static_cast<std::size_t>(most_)] + "\" (usage: " + usage_ +
                     ")");
  return true;
}

std::vector<std::string> Options::all(const std::string& name) const {
  return has(name) ? get<std::vector<std::string>>(name) : std::vector<std::string>{};
}

const std::vector<std::string>& Options::needed_positional() const {
  if (positional_.empty()) throw UsageError("missing " + argument_ + " (usage: " + usage_ + ")");
  return positional_;
}

std::string choose(const std::string& what, const std::string& given, const std::vector<std::string>& known) {
  return what + " \"" + given + "\"" + sim::did_you_mean(given, known) + " (known: " + sim::quoted_list(known) + ")";
}

}  // namespace cli
