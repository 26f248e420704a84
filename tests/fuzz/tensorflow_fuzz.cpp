// Any bytes at all as a model of TensorFlow: either an Error, or a program.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/interop/proto_writer.h"
#include "oar/interop/tensorflow/import.h"
#include "parsers.h"

namespace {

using oar::ProtoWriter;

// Several files in one: they end where a line of dashes begins.
constexpr std::string_view kBetween = "\n----\n";

std::string_view take_file(std::string_view& rest) {
  const size_t end = rest.find(kBetween);
  const std::string_view file = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + kBetween.size());
  return file;
}

void read_frozen(std::string_view file) { import_small(oar::tensorflow::read_frozen_graph(file)); }

void read_saved(std::string_view files) {
  const std::string_view graph = take_file(files), index = take_file(files);
  const auto read = [&](const std::string& path) {
    return std::string(path.ends_with(".index") ? index : files);
  };
  import_small(oar::tensorflow::read_saved_model(graph, read));
}

void read_web(std::string_view files) {
  const std::string_view json = take_file(files);
  import_small(oar::tensorflow::read_web_model(
      json, [&](const std::string&) { return std::string(files); }));
}

// ---- seeds -------------------------------------------------------------------------------------

ProtoWriter entry(std::string_view key, const ProtoWriter& value) {
  ProtoWriter made;
  made.text(1, key);
  made.message(2, value);
  return made;
}

class Node {
 public:
  Node(std::string_view name, std::string_view op, const std::vector<std::string>& inputs = {}) {
    node_.text(1, name);
    node_.text(2, op);
    for (const std::string& input : inputs) node_.text(3, input);
  }
  Node& integer(std::string_view key, int field, int64_t value) {
    ProtoWriter attribute;
    attribute.integer(field, value);
    return add(key, attribute);
  }
  Node& text(std::string_view key, std::string_view value) {
    ProtoWriter attribute;
    attribute.text(2, value);
    return add(key, attribute);
  }
  Node& function(std::string_view key, std::string_view name) {
    ProtoWriter inner, attribute;
    inner.text(1, name);
    attribute.message(10, inner);
    return add(key, attribute);
  }
  Node& list(std::string_view key, const std::vector<int64_t>& values) {
    ProtoWriter inner, attribute;
    inner.integers(3, values);
    attribute.message(1, inner);
    return add(key, attribute);
  }
  Node& message(std::string_view key, int field, const ProtoWriter& value) {
    ProtoWriter attribute;
    attribute.message(field, value);
    return add(key, attribute);
  }
  const ProtoWriter& written() const { return node_; }

 private:
  Node& add(std::string_view key, const ProtoWriter& attribute) {
    node_.message(5, entry(key, attribute));
    return *this;
  }
  ProtoWriter node_;
};

ProtoWriter shape_of(const std::vector<int64_t>& sizes) {
  ProtoWriter shape;
  for (const int64_t size : sizes) {
    ProtoWriter dim;
    dim.integer(1, size);
    shape.message(2, dim);
  }
  return shape;
}

Node placeholder(std::string_view name, const std::vector<int64_t>& sizes) {
  return Node(name, "Placeholder").integer("dtype", 6, 1).message("shape", 7, shape_of(sizes));
}

Node numbers(std::string_view name, const std::vector<int64_t>& sizes,
             const std::vector<float>& values) {
  ProtoWriter tensor;
  tensor.integer(1, 1);
  tensor.message(2, shape_of(sizes));
  tensor.float32s(5, values);
  return Node(name, "Const").integer("dtype", 6, 1).message("value", 8, tensor);
}
Node integers(std::string_view name, const std::vector<int64_t>& sizes,
              const std::vector<int64_t>& values) {
  ProtoWriter tensor;
  tensor.integer(1, 3);
  tensor.message(2, shape_of(sizes));
  tensor.integers(7, values);
  return Node(name, "Const").integer("dtype", 6, 3).message("value", 8, tensor);
}
Node texts(std::string_view name, const std::vector<std::string>& values) {
  ProtoWriter tensor;
  tensor.integer(1, 7);
  tensor.message(2, shape_of({static_cast<int64_t>(values.size())}));
  for (const std::string& value : values) tensor.text(8, value);
  return Node(name, "Const").integer("dtype", 6, 7).message("value", 8, tensor);
}

ProtoWriter function(const std::string& name, const std::vector<std::string>& arguments,
                     std::string_view source, const std::vector<Node>& nodes) {
  ProtoWriter signature, made, result, ret;
  signature.text(1, name);
  for (const std::string& argument : arguments) {
    ProtoWriter one;
    one.text(1, argument);
    signature.message(2, one);
  }
  result.text(1, "r");
  signature.message(3, result);
  made.message(1, signature);
  for (const Node& node : nodes) made.message(3, node.written());
  ret.text(1, "r");
  ret.text(2, source);
  made.message(4, ret);
  return made;
}

ProtoWriter graph(const std::vector<Node>& nodes, const std::vector<ProtoWriter>& functions) {
  ProtoWriter made, library;
  for (const Node& node : nodes) made.message(1, node.written());
  for (const ProtoWriter& f : functions) library.message(1, f);
  made.message(2, library);
  return made;
}

// A convolution, sizes as constants, a loop.
std::string frozen_seed() {
  const auto more =
      function("more", {"i", "x"}, "less:z:0",
               {integers("two", {}, {2}), Node("less", "Less", {"i", "two:output:0"})});
  ProtoWriter body =
      function("body", {"i", "x"}, "next:z:0",
               {integers("one", {}, {1}), Node("next", "AddV2", {"i", "one:output:0"})});
  return graph(
             {placeholder("x", {-1, 4, 4, 1}), numbers("w", {2, 2, 1, 2}, {1, 2, 3}),
              Node("c", "Conv2D", {"x", "w"}).text("padding", "SAME").list("strides", {1, 2, 2, 1}),
              Node("p", "MaxPool", {"c"})
                  .text("padding", "VALID")
                  .list("strides", {1, 1, 1, 1})
                  .list("ksize", {1, 2, 2, 1}),
              Node("s", "Shape", {"p"}), integers("zero", {1}, {0}), integers("one", {1}, {1}),
              Node("n", "StridedSlice", {"s", "zero", "one", "one"})
                  .integer("shrink_axis_mask", 3, 1),
              integers("two", {}, {2}), Node("to", "Pack", {"n", "two"}),
              Node("flat", "Reshape", {"p", "to"}), integers("i", {}, {0}),
              Node("loop", "PartitionedCall", {"i", "flat"}).function("f", "body"),
              Node("less", "If", {"loop", "i", "flat"})
                  .function("then_branch", "more")
                  .function("else_branch", "more"),
              Node("y", "Softmax", {"flat"}), Node("z", "Cast", {"less"}).integer("DstT", 6, 1)},
             {more, body})
      .take();
}

// A loop and a branch of an old graph, which a run decides, and an array.
std::string old_seed() {
  const auto enter = [](std::string_view name, const std::string& from) {
    return Node(name, "Enter", {from}).text("frame_name", "f");
  };
  return graph({placeholder("x", {2}),
                integers("axis", {1}, {0}),
                numbers("limit", {}, {9}),
                enter("in", "x"),
                enter("most", "limit"),
                Node("merge", "Merge", {"in", "turn"}),
                Node("sum", "Sum", {"merge", "axis"}),
                Node("less", "Less", {"sum", "most"}),
                Node("goes", "LoopCond", {"less"}),
                Node("switch", "Switch", {"merge", "goes"}),
                Node("now", "Identity", {"switch:1"}),
                Node("next", "AddV2", {"now", "most"}),
                Node("turn", "NextIteration", {"next"}),
                Node("out", "Exit", {"switch"}),
                Node("total", "Sum", {"out", "axis"}),
                Node("good", "Greater", {"total", "limit"}),
                Node("s", "Switch", {"out", "good"}),
                Node("no", "Neg", {"s"}),
                Node("yes", "Relu", {"s:1"}),
                Node("y", "Merge", {"no", "yes"}),
                integers("rows", {}, {2}),
                integers("one", {}, {1}),
                Node("array", "TensorArrayV3", {"rows"}).integer("dtype", 6, 1),
                Node("written", "TensorArrayWriteV3", {"array", "one", "y", "array:1"}),
                Node("z", "TensorArrayReadV3", {"array", "one", "written"})},
               {})
      .take();
}

uint32_t checksum(std::string_view bytes) {
  uint32_t word = ~0U;
  for (const char c : bytes) {
    word ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) word = word >> 1 ^ ((word & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return std::rotr(~word, 15) + 0xa282ead8U;
}
std::string number(uint64_t value, int bytes) {
  return {reinterpret_cast<const char*>(&value), static_cast<size_t>(bytes)};
}
std::string table_entry(std::string_view key, std::string_view value) {
  return std::string(1, '\0') + char(key.size()) + char(value.size()) + std::string(key) +
         std::string(value);
}
std::string block(std::string content) {
  content += number(0, 4) + number(1, 4);
  content += '\0';
  return content + number(checksum(content), 4);
}
std::string handle(size_t at, size_t size) {
  return {static_cast<char>((at & 0x7f) | 0x80), static_cast<char>(at >> 7),
          static_cast<char>(size - 5)};
}

std::string index_of(std::string_view key, std::string_view content) {
  ProtoWriter header, variable;
  header.integer(1, 1);
  variable.integer(1, 1);
  variable.message(2, shape_of({2}));
  variable.integer(5, static_cast<int64_t>(content.size()));
  variable.float32(6, std::bit_cast<float>(checksum(content)));
  const std::string data =
      block(table_entry("", header.bytes()) + table_entry(key, variable.bytes()));
  const std::string notes = block("");
  const std::string index = block(table_entry("~", handle(0, data.size())));
  std::string footer =
      handle(data.size(), notes.size()) + handle(data.size() + notes.size(), index.size());
  footer.resize(40);
  return data + notes + index + footer + number(0xdb4775248b80fb57, 8);
}

ProtoWriter ends(int field, std::string_view key, std::string_view tensor) {
  ProtoWriter info, made;
  info.text(1, tensor);
  info.message(3, shape_of({-1, 2}));
  made.message(field, entry(key, info));
  return made;
}

std::string saved_seed() {
  const auto restoring =
      function("restoring", {"file", "v"}, "file",
               {texts("keys", {"k"}), texts("parts", {""}),
                Node("read", "RestoreV2", {"file", "keys:output:0", "parts:output:0"}),
                Node("write", "AssignVariableOp", {"v", "read:tensors:0"})});
  const auto adding =
      function("adding", {"x", "v"}, "sum:z:0",
               {Node("own", "ReadVariableOp", {"v"}), Node("sum", "AddV2", {"x", "own:value:0"})});
  const ProtoWriter whole =
      graph({placeholder("x", {-1, 2}), Node("v", "VarHandleOp").text("shared_name", "v"),
             Node("file", "Placeholder").integer("dtype", 6, 7),
             Node("restore", "StatefulPartitionedCall", {"file", "v"}).function("f", "restoring"),
             Node("call", "StatefulPartitionedCall", {"x", "v"}).function("f", "adding")},
            {restoring, adding});
  ProtoWriter meta, tags, saver, file;
  tags.text(4, "serve");
  saver.text(3, "restore");
  meta.message(1, tags);
  meta.message(2, whole);
  meta.message(3, saver);
  const std::string both = ends(1, "x", "x:0").bytes() + ends(2, "y", "call:0").bytes();
  ProtoWriter signature;
  signature.text(1, "serving_default");
  signature.text(2, both);
  meta.message(5, signature);
  file.integer(1, 1);
  file.message(2, meta);
  const std::string content("\0\0\x80\x3f\0\0\0\x40", 8);
  return file.bytes() + std::string(kBetween) + index_of("k", content) + std::string(kBetween) +
         content;
}

std::string web_seed() {
  const std::string json =
      R"({"format": "graph-model", "modelTopology": {"node": [)"
      R"({"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": {"dim": [{"size": "-1"}, {"size": "2"}]}}}},)"
      R"({"name": "w", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}}, {"name": "b", "op": "Const"},)"
      R"({"name": "y", "op": "_FusedMatMul", "input": ["x", "w", "b"], "attr": {"transpose_b": {"b": true}, "fused_ops": {"list": {"s": ["Qmlhc0FkZA==", "UmVsdQ=="]}}}}]},)"
      R"("weightsManifest": [{"paths": ["p"], "weights": [{"name": "w", "shape": [2, 2], "dtype": "float32", "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},)"
      R"({"name": "b", "shape": [2], "dtype": "float32", "quantization": {"dtype": "float16"}}]}], "signature": {"outputs": {"y": {"name": "y:0"}}}})";
  return json + std::string(kBetween) + std::string("\1\2\3\4\0\x3c\0\x40", 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  expect_error_or_nothing([&] { read_frozen(file); });
  expect_error_or_nothing([&] { read_saved(file); });
  expect_error_or_nothing([&] { read_web(file); });
  return 0;
}

std::vector<std::string> seeds() {
  read_frozen(frozen_seed());  // they are good: an error here ends the program
  read_frozen(old_seed());
  read_saved(saved_seed());
  read_web(web_seed());
  // Mutants of mutants are mostly wrong at their beginning: half of the pool stays good.
  std::vector<std::string> pool(64, frozen_seed());
  pool.resize(112, saved_seed());
  pool.resize(160, web_seed());
  pool.resize(200, old_seed());
  return pool;
}

std::vector<std::string> dictionary() {
  return {"Reshape",    "Pad",          "Transpose",  "Conv2D",    "AvgPool",
          "While",      "Switch",       "Merge",      "ConcatV2",  "Slice",
          "GatherV2",   "Tile",         "Fill",       "Range",     "TopKV2",
          "Where",      "^x",           "x:1",        "y:z:0",     "sum:z:0",
          "Identity",   "NCHW",         "EXPLICIT",   "dilations", "\x0a\x04",
          "\x12\x02",   "\x2a\x06",     "VariableV2", "SplitV",    "BatchToSpaceND",
          "block_size", "data_format",  "\"uint16\"", "[2, -1]",   "DT_INT32",
          "Unpack",     "StridedSlice", "Enter",      "Exit",      "NextIteration",
          "LoopCond",   "frame_name",   "switch:1"};
}
