// Branches and loops, as ops with blocks.
#include "oar/interop/paddle/writer.h"
#include "oar/ir/region.h"

namespace oar::paddle {
namespace {

FileId truth(const Written& c, FileId x) {
  return c.writer.type_of(x).shape.size() == 1 ? x : c.reshaped(x, {1});
}

// Two branches, chosen by whether the index is 0.
void switch_op(const Written& c) {
  const ClosureList branches = as_programs(c.value("branches"));
  const FileId index = c.in("index");
  const FileType type = c.writer.type_of(index);
  const FileId is_first = truth(c, c.add("equal", {index, c.writer.number(0, type.dtype)},
                                         {DType::Bool, type.shape.empty() ? List{1} : type.shape}));
  FileNode node{"if", {is_first}, {}, {}, {}, {}};
  const std::vector<FileId> captured = c.all_in("captured");
  for (size_t side = 0; side < 2; ++side)
    node.blocks.push_back(c.writer.region(program_of(*branches[side]), captured));
  for (size_t i = 0; i < c.call.results.size(); ++i) {
    node.results.push_back({c.writer.new_value(c.result(i))});
    node.lists.push_back(false);
  }
  const auto results = node.results;
  c.writer.append(std::move(node));
  for (size_t i = 0; i < results.size(); ++i) c.give(results[i][0], i);
}
bool leaves_no_trace(const ProgramCall& c) { return !c.flag("trace") && !c.has("random"); }
bool has_two_branches(const ProgramCall& c) {
  return leaves_no_trace(c) && as_programs(c.value("branches")).size() == 2;
}

// The test runs before the loop and at the end of its body.
void while_op(const Written& c) {
  const Program &test = program_of(as_program(c.value("test"))),
                &body = program_of(as_program(c.value("body")));
  const std::vector<FileId> carried = c.all_in("carried"), captured = c.all_in("captured");
  const auto with_captured = [&](std::vector<FileId> values) {
    values.insert(values.end(), captured.begin(), captured.end());
    return values;
  };
  FileNode node{"while", {truth(c, c.writer.inlined(test, with_captured(carried))[0])}, {}, {}, {},
                {}};
  FileBlock block;
  for (size_t i = 0; i < carried.size(); ++i) {
    node.operands.emplace_back(carried[i]);
    block.arguments.push_back(c.writer.new_value(c.result(i)));
  }
  block = c.writer.inside(std::move(block), [&](const std::vector<FileId>& arguments) {
    std::vector<FileId> next = c.writer.inlined(body, with_captured(arguments));
    next.insert(next.begin(), truth(c, c.writer.inlined(test, with_captured(next))[0]));
    return next;
  });
  node.blocks.push_back(std::move(block));
  for (size_t i = 0; i < carried.size(); ++i) {
    node.results.push_back({c.writer.new_value(c.result(i))});
    node.lists.push_back(false);
  }
  const auto results = node.results;
  c.writer.append(std::move(node));
  for (size_t i = 0; i < results.size(); ++i) c.give(results[i][0], i);
}

constexpr OpWriter kWriters[] = {
    {"switch_case", switch_op, has_two_branches},
    {"while_loop", while_op, leaves_no_trace},
};

}  // namespace

std::span<const OpWriter> control_writers() { return kWriters; }

}  // namespace oar::paddle
