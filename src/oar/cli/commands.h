// The subcommands of `oar`. Each prints to `out` and returns the exit status.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace oar::cli {

// Checks the machine and the installation; 1 if something is wrong.
int doctor(std::ostream& out, bool color);

// The flags with their values.
int show_flags(std::ostream& out, bool color);

struct OpsQuery {
  std::string name;    // one op in full; empty lists all
  std::string family;  // restricts the list
};
int show_ops(std::ostream& out, bool color, const OpsQuery& query);

struct InspectQuery {
  std::string path;  // of a program's text; "-" is standard input
  std::string svg;   // where to draw it; empty prints it
  bool optimise = false;
};
int inspect(std::ostream& out, bool color, const InspectQuery& query);

// The dashboard. It is written in Python, which takes this process over and parses the words itself.
int board(const std::vector<std::string>& words);

}  // namespace oar::cli
