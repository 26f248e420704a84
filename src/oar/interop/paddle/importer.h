// From a file that is read already to a program.
#pragma once

#include <set>

#include "oar/compiler/capture/capture.h"
#include "oar/interop/paddle/call.h"

namespace oar::paddle {

// `like`: inputs like those of the runs to come, or none. With `fixed`, their sizes are the program's.
Program import_program(const ModelFile& model, const std::vector<Tensor>& like, bool fixed);

// Branches, loops, and ends of blocks.
bool is_control(const Node& node);

// Runs the ops of a model once, on symbolic tensors.
class Importer {
 public:
  explicit Importer(const ModelFile& model);
  Program run(const std::vector<Tensor>& like, bool fixed);

 private:
  using Scope = std::map<std::string, Item>;

  void add_input(const Port& port, const Tensor& like, bool fixed);
  Dim open_size(const Port& port, size_t axis, int64_t seen);
  void add_node(const Node& node);
  std::vector<Item> inputs_of(const Node& node);
  Item input_of(const Node& node, const Slot& slot);
  void define_results(const Node& node, Values results, bool known);
  static Values convert(const Call& call);
  Values captured(const Call& call);

  // Branches and loops (control.cpp).
  void add_control(const Node& node);
  void add_if(const Node& node);
  void add_while(const Node& node);
  void add_legacy_if(const Node& node);
  void add_legacy_while(const Node& node);
  std::vector<Tensor> run_block(const Block& block, const std::vector<std::string>& results,
                                const std::vector<Tensor>& arguments,
                                const std::vector<std::string>& names);
  void settle_constants(const Block& block, std::set<std::string>& varying);
  Tensor truth(const std::string& name, const Node& node);

  const Item& value(const std::string& name, const std::string& reader) const;
  void define(const std::string& name, Item item);

  const ModelFile& model_;
  Capture capture_;
  Scope values_;
  int regions_ = 0;  // that are being captured
};

// Reads the content of a tensor that is known; outside of the capture.
void make_known(Item& item);

}  // namespace oar::paddle
