// SPDX-License-Identifier: Apache-2.0
// The commands of rdmasim. Each takes the arguments after its name and returns the exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cli {

using Arguments = std::vector<std::string>;

int run_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int explore_command(const Arguments& arguments);
int sweep_command(const Arguments& arguments);
int merge_command(const Arguments& arguments);
int diff_command(const Arguments& arguments);
int explain_command(const Arguments& arguments);
int view_command(const Arguments& arguments);
int validate_command(const Arguments& arguments);
int config_command(const Arguments& arguments);
int list_command(const Arguments& arguments);

/// Everything: finds the command, reports mistakes and returns the exit code of the process.
int dispatch(const Arguments& arguments);
/// Runs one command, reports what it throws and returns the exit code.
int guarded(const std::function<int()>& command);

}  // namespace cli
