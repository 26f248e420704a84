#include "oar/interop/onnx/export.h"

#include <filesystem>
#include <set>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/version.h"
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/tensor/byte_count.h"

namespace oar::onnx {
namespace {

std::string bare(const Program& program, ValueId id) { return program.label(id).substr(1); }

struct Data {
  explicit Data(const std::string& path)
      : name(std::filesystem::path(path).filename().string()), file(path) {}
  std::string name;  // of the file beside the model
  AtomicFile file;
  int64_t offset = 0;
};

ProtoWriter entry(std::string_view key, std::string_view value) {
  ProtoWriter made;
  made.text(1, key);
  made.text(2, value);
  return made;
}

// A weight, in the message or in the file of data.
ProtoWriter proto_of(const std::string& name, const Tensor& t, Data* data) {
  ProtoWriter made;
  for (const Dim d : t.dims()) made.integer(1, d.value());
  made.integer(2, number_of(t.dtype()));
  made.text(8, name);
  const Tensor plain = t.is_contiguous() ? t : assign(t);
  const auto size = static_cast<size_t>(bytes_of(plain.shape(), plain.dtype()).value());
  constexpr size_t kSmall = 1024;
  if (!data || size < kSmall) {
    made.text(9, {static_cast<const char*>(plain->data), size});
    return made;
  }
  constexpr int64_t kPage = 4096;  // as the standard advises, for readers that map the file
  const std::string gap(static_cast<size_t>((kPage - data->offset % kPage) % kPage), '\0');
  data->file.write(gap.data(), gap.size());
  data->offset += static_cast<int64_t>(gap.size());
  data->file.write(plain->data, size);
  made.message(13, entry("location", data->name));
  made.message(13, entry("offset", std::to_string(data->offset)));
  made.message(13, entry("length", std::to_string(size)));
  made.integer(14, 1);
  data->offset += static_cast<int64_t>(size);
  return made;
}

int64_t bytes_in(const Weights& weights) {
  int64_t total = 0;
  for (const auto& [name, t] : weights.list) total += bytes_of(t.shape(), t.dtype()).value();
  return total;
}

ProtoWriter opset_of(std::string_view domain, int64_t version) {
  ProtoWriter made;
  made.text(1, domain);
  made.integer(2, version);
  return made;
}

// The version of the file format that belongs to a version of the operators.
int64_t ir_version_of(int64_t opset) {
  return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11;
}

void write_interface(GraphWriter& graph, const Program& program, const ExportOptions& options) {
  const auto named = [](const std::vector<std::string>& given, size_t i,
                        const std::string& otherwise) {
    return i < given.size() ? given[i] : otherwise;
  };
  for (size_t i = 0; i < program.inputs.size(); ++i)
    graph.add_input(program, program.inputs[i],
                    named(options.inputs, i, bare(program, program.inputs[i])));
  for (size_t i = 0; i < program.outputs.size(); ++i)
    graph.weights().fresh(named(options.outputs, i, format("output_{}", i)));
  for (const Constant& c : program.constants) {
    const bool has_name = !program.values[static_cast<size_t>(c.value)].name.empty();
    graph.define(
        program, c.value,
        has_name ? graph.weight(c.tensor, bare(program, c.value)) : graph.constant(c.tensor));
  }
  graph.add_body(program);
  for (size_t i = 0; i < program.outputs.size(); ++i)
    graph.add_output(program.type_of(program.outputs[i]), graph.name_of(program.outputs[i]),
                     named(options.outputs, i, format("output_{}", i)));
}

}  // namespace

void export_program(const Program& program, const std::string& path, const ExportOptions& options) {
  user_check(options.opset >= kOldestExport && options.opset <= kNewestExport,
             ErrorKind::InvalidArgument,
             "models are written with version {} to {} of ONNX's operators, not {}.", kOldestExport,
             kNewestExport, options.opset);
  for (const auto& names : {options.inputs, options.outputs})
    user_check(std::set<std::string>(names.begin(), names.end()).size() == names.size(),
               ErrorKind::InvalidArgument, "the names of inputs or outputs are not all different.");
  const Program written =
      for_writing(program, format("ONNX version {}", options.opset), [&](const ProgramCall& c) {
        return can_be_written(OpCall(c.program, c.call, nullptr, options.opset));
      });
  auto weights = std::make_shared<Weights>();
  GraphWriter graph(program.name, options.opset, weights);
  write_interface(graph, written, options);

  std::unique_ptr<Data> data;
  if (bytes_in(*weights) > options.most_inside) data = std::make_unique<Data>(path + ".data");
  ProtoWriter body = graph.proto();
  for (const auto& [name, t] : weights->list) body.message(5, proto_of(name, t, data.get()));
  ProtoWriter model;
  model.integer(1, ir_version_of(options.opset));
  model.text(2, "oar");
  model.text(3, version());
  model.message(7, body);
  model.message(8, opset_of("", options.opset));
  for (const auto& [domain, number] : weights->domains) model.message(8, opset_of(domain, number));
  if (data) data->file.commit();
  write_file_atomic(path, model.bytes());
}

}  // namespace oar::onnx
