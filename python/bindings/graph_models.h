// Models of other frameworks as Python objects.
#pragma once

#include <memory>
#include <string>

#include "common.h"
#include "oar/interop/graph_model.h"

namespace oar::python {

PyObject* wrap_graph(std::shared_ptr<const interop::GraphModel> model);
// Names in files may be any bytes.
PyObject* file_text(const std::string& text);

}  // namespace oar::python
