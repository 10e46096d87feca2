// SPDX-License-Identifier: Apache-2.0
// Names in programs: whether each leads to something of the right kind.
#pragma once

#include <set>
#include <string>

#include "sim/config_json.h"
#include "system/scenario.h"

namespace sys {

/// Kinds of objects that a program declares.
enum class ObjectKind : std::uint8_t { pd, mr, channel, cq, srq, qp, ah, mw };
const char* name_of(ObjectKind k);

/// The program whose process `name` runs in: itself, or the one that it is a thread of; nullptr for an unknown name.
const ProgramConfig* process_owner(const ScenarioConfig& scenario, const std::string& name);

/// Tags of the program's steps "meet".
std::set<std::string> meeting_tags(const ProgramConfig& program);

/// Adds every mistake in the references of the scenario's programs, shown where the name stands.
void check_programs(const ScenarioConfig& scenario, sim::ConfigErrors& errors);

}  // namespace sys
