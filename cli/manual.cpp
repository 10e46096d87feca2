// SPDX-License-Identifier: Apache-2.0
// roff as man(7) describes it. Completion: commands, options, the values of options that name them as a|b, files and
// directories where an option or a command takes one.
#include "cli/manual.h"

namespace cli {
namespace {

namespace po = boost::program_options;

std::string roff(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') out += "\\e";
    else if (text[i] == '-') out += "\\-";
    else if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
      out += std::string("\\&") + text[i];
    else out += text[i];
  }
  return out;
}

/// "FILE" of "FILE", "table|json" of "table|json (=table)", "" of a switch.
std::string argument_of(const po::option_description& o) {
  if (o.semantic()->max_tokens() == 0) return {};
  const std::string all = o.format_parameter();
  const std::string name = all.substr(0, all.find(" (="));
  return name.starts_with("[=") ? std::string() : name;
}

std::string words(const std::string& choices) {
  std::string out = choices;
  for (char& c : out)
    if (c == '|') c = ' ';
  return out;
}

}  // namespace

std::string man_head(const std::string& version, const std::vector<CommandSummary>& commands) {
  std::string out =
      ".TH RDMASIM 1 \"\" \"" + roff(version) +
      "\" \"User Commands\"\n"
      ".SH NAME\nrdmasim \\- simulates the RDMA stack\n"
      ".SH SYNOPSIS\n.B rdmasim\n.I COMMAND\n.RI [ OPTIONS ]\n"
      ".SH DESCRIPTION\n"
      "A discrete\\-event simulator of the RDMA stack, from ibv_post_send to the peer's ibv_poll_cq. It runs "
      "scenarios,\nfiles in JSON, and reports latency, rates, and where the time of a message goes.\n"
      ".SH COMMANDS\n";
  for (const CommandSummary& c : commands) out += ".TP\n.B " + roff(c.name) + "\n" + roff(c.summary) + "\n";
  return out;
}

std::string man_part(const std::string& usage, const std::string& summary, const po::options_description& options) {
  const std::size_t name = usage.find(' ') + 1;
  std::string out = ".SH \"" + roff(usage.substr(name, usage.find(' ', name) - name)) + "\"\n.B " + roff(usage) +
                    "\n.PP\n" + roff(summary) + "\n";
  for (const auto& o : options.options()) {
    const std::string argument = argument_of(*o);
    out += ".TP\n.B \\-\\-" + roff(o->long_name()) + (argument.empty() ? "" : " " + roff(argument)) + "\n" +
           roff(o->description()) + "\n";
  }
  return out;
}

std::string man_tail() {
  return ".SH \"EXIT STATUS\"\n"
         ".TP\n.B 0\nfine\n"
         ".TP\n.B 1\nan expectation of the scenario is not met, or a step of a program went wrong\n"
         ".TP\n.B 2\na mistake of the user: command line, scenario, or a file that cannot be read or written\n"
         ".TP\n.B 3\na bug of the simulator\n"
         ".TP\n.B 4\ndeadlock that the scenario does not expect\n"
         ".TP\n.B 130\ninterrupted; what there was has been reported\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B RDMASIM_DATA\na directory with scenarios and profiles, searched first\n"
         ".TP\n.B RDMASIM_PYTHON\nthe Python interpreter of the report, /usr/bin/python3 by default\n"
         ".SH FILES\n"
         ".I /usr/share/rdmasim/scenarios\n.PP\nScenarios, machine profiles and the JSON Schemas of both.\n";
}

std::string completion_head(const std::vector<CommandSummary>& commands) {
  std::string names;
  for (const CommandSummary& c : commands) names += c.name + " ";
  return "# Completion of rdmasim for bash, written by `rdmasim --bash-completion`.\n"
         "_rdmasim() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options=''\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W '" +
         names +
         "--help --version' -- \"$current\")\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n";
}

std::string completion_part(const std::string& command, const po::options_description& options) {
  std::string names, values, files, directories, others;
  const auto add = [](std::string& list, const std::string& option) { list += (list.empty() ? "" : " | ") + option; };
  for (const auto& o : options.options()) {
    const std::string option = "--" + o->long_name(), argument = argument_of(*o);
    names += option + " ";
    if (argument.find('|') != std::string::npos)
      values += "        " + option + ") mapfile -t COMPREPLY < <(compgen -W '" + words(argument) +
                "' -- \"$current\"); return ;;\n";
    else if (argument == "DIR") add(directories, option);
    else if (argument == "FILE") add(files, option);
    else if (!argument.empty()) add(others, option);
  }
  std::string out = "    " + command + ")\n      options='" + names + "'\n";
  if (values.empty() && files.empty() && directories.empty() && others.empty()) return out + "      ;;\n";
  out += "      case $previous in\n" + values;
  if (!directories.empty())
    out += "        " + directories + ") mapfile -t COMPREPLY < <(compgen -d -- \"$current\"); return ;;\n";
  if (!files.empty()) out += "        " + files + ") mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); return ;;\n";
  if (!others.empty()) out += "        " + others + ") return ;;\n";
  return out + "      esac ;;\n";
}

std::string completion_tail() {
  return "    *) return ;;\n"
         "  esac\n"
         "  case $current in\n"
         "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\") ;;\n"
         "    *) mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _rdmasim rdmasim\n";
}

}  // namespace cli
