// Commands that the Python package implements.
#pragma once

#include <string>
#include <vector>

namespace oar::cli {

// Python takes this process over, with these words after the interpreter. Errors begin with `what`: which command it is, and that
// the package has it.
int run_python(const std::string& what, const std::vector<std::string>& words);

}  // namespace oar::cli
