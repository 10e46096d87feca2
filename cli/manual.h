// SPDX-License-Identifier: Apache-2.0
// The manual page and the completion of bash, both written from the options that the commands themselves parse.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// What a command prints instead of its help when it is asked for its part of the manual or of the completion.
inline constexpr std::string_view kManPart = "--man-part", kCompletionPart = "--completion-part";

/// A command and what it is for.
struct CommandSummary {
  std::string name, summary;
};

/// rdmasim(1) in roff up to the commands' parts, and what follows them.
std::string man_head(const std::string& version, const std::vector<CommandSummary>& commands);
std::string man_part(const std::string& usage, const std::string& summary,
                     const boost::program_options::options_description& options);
std::string man_tail();

/// The script up to the commands' parts, and what follows them.
std::string completion_head(const std::vector<CommandSummary>& commands);
std::string completion_part(const std::string& command, const boost::program_options::options_description& options);
std::string completion_tail();

}  // namespace cli
