#include "oar/interop/pytorch/export_file.h"

#include <algorithm>
#include <set>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/pytorch/call.h"
#include "oar/interop/pytorch/state_dict.h"
#include "oar/interop/pytorch/tensors.h"

namespace oar::pytorch {
namespace {

constexpr std::string_view kOlderProgram = "serialized_exported_program.json";
constexpr int64_t kOldestSchema = 5, kNewestSchema = 8;

[[noreturn]] void damaged(std::string_view what) {
  fail(ErrorKind::InvalidArgument, "the archive of torch.export is damaged: {}.", what);
}

// PyTorch 2.4 writes numbers that JSON does not have. They become texts, which newer archives have for them.
std::string with_texts(const std::string& json) {
  constexpr std::string_view kNames[] = {"-Infinity", "Infinity", "NaN"};
  std::string made;
  made.reserve(json.size());
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = std::string_view(json).substr(i);
    const auto* name = quoted
                           ? std::end(kNames)
                           : std::find_if(std::begin(kNames), std::end(kNames),
                                          [&](std::string_view n) { return rest.starts_with(n); });
    if (name != std::end(kNames)) {
      made += '"' + std::string(*name) + '"';
      i += name->size() - 1;
      continue;
    }
    if (json[i] == '"') quoted = !quoted;
    made += json[i];
    if (quoted && json[i] == '\\' && i + 1 < json.size()) made += json[++i];
  }
  return made;
}

// The folder that everything is in: the archive's own name.
std::string root_of(const ZipFile& zip) {
  for (const ZipFile::Entry& entry : zip.entries())
    if (const size_t at = entry.name.find("/models/"); at != std::string::npos)
      return entry.name.substr(0, at + 1);
  return "";
}

std::string text_in(const ZipFile& zip, const std::string& name) {
  const ZipFile::Entry* entry = zip.find(name);
  if (!entry) damaged(format("it has no '{}'", name));
  return zip.content(*entry);
}

// The one model of an archive.
std::string model_name(const ZipFile& zip, const std::string& root) {
  std::vector<std::string> names;
  const std::string folder = root + "models/";
  for (const ZipFile::Entry& entry : zip.entries())
    if (entry.name.starts_with(folder) && entry.name.ends_with(".json"))
      names.push_back(entry.name.substr(folder.size(), entry.name.size() - folder.size() - 5));
  user_check(names.size() == 1, ErrorKind::Unsupported,
             "the archive has {} models, and Oar reads archives with one: [{}].", names.size(),
             join(names, ", "));
  return names[0];
}

Layout layout_in(const JsonValue& meta) {
  Layout made;
  made.dtype = dtype_of(dtype_number(meta.at("dtype").integer()));
  for (const JsonValue& size : meta.at("sizes").list())
    made.sizes.push_back(size.at("as_int").integer());
  for (const JsonValue& stride : meta.at("strides").list())
    made.strides.push_back(stride.at("as_int").integer());
  made.offset = meta.at("storage_offset").at("as_int").integer();
  user_check(meta.at("layout").integer() == 7, ErrorKind::Unsupported,
             "the archive has a sparse tensor.");
  return made;
}

NamedTensors tensors_of(const ZipFile& zip, const std::string& folder, const std::string& config) {
  NamedTensors named;
  const ZipFile::Entry* entry = zip.find(folder + config);
  if (!entry) return named;
  const JsonValue root = JsonValue::parse(zip.content(*entry));
  std::map<std::string, std::string> storages;
  for (const auto& [name, one] : root.at("config").object()) {
    const std::string& path = one.at("path_name").text();
    if (const JsonValue* pickled = one.find("use_pickle"); pickled && pickled->flag())
      fail(ErrorKind::Unsupported, "'{}' is stored as a pickle, which Oar cannot read yet.", name);
    if (!storages.contains(path)) storages[path] = text_in(zip, folder + path);
    named[name] = tensor_in(storages[path], layout_in(one.at("tensor_meta")));
  }
  return named;
}

// Up to PyTorch 2.7 tensors are archives of torch.save within the archive.
NamedTensors tensors_of_older(const ZipFile& zip, const std::string& name) {
  const ZipFile::Entry* entry = zip.find(name);
  if (!entry) return {};
  const std::string content = zip.content(*entry);
  if (content.empty()) return {};
  return saved_tensors(ZipFile(content));
}

void check_version(const JsonValue& root) {
  const JsonValue& version = root.at("schema_version");
  const int64_t major = version.at("major").integer();
  user_check(major >= kOldestSchema && major <= kNewestSchema, ErrorKind::Unsupported,
             "the archive has version {}.{} of its format, and Oar reads {} to {}.", major,
             version.at("minor").integer(), kOldestSchema, kNewestSchema);
}

interop::Port port_of(const JsonValue& graph, const std::string& name) {
  const JsonValue& meta = graph.at("tensor_values").at(name);
  std::vector<int64_t> shape;
  for (const JsonValue& size : meta.at("sizes").list()) {
    const JsonValue* fixed = size.find("as_int");
    shape.push_back(fixed ? fixed->integer() : -1);
  }
  return {name, dtype_of(dtype_number(meta.at("dtype").integer())), std::move(shape)};
}

class Reader {
 public:
  Reader(ExportFile& file, const NamedTensors& weights, const NamedTensors& constants)
      : file_(file), weights_(weights), constants_(constants) {}

  void run() {
    const JsonValue& signature = file_.root.at("graph_module").at("signature");
    for (const JsonValue& spec : signature.at("input_specs").list()) add_input(spec);
    for (const JsonValue& spec : signature.at("output_specs").list()) add_output(spec);
    name_outputs();
  }

 private:
  void add_input(const JsonValue& spec) {
    const auto [kind, content] = member_of(spec);
    if (kind == "user_input") {
      const auto [type, arg] = member_of(content->at("arg"));
      if (type == "as_none") return;
      user_check(type == "as_tensor", ErrorKind::Unsupported,
                 "an input of the model is no tensor ({}).", type);
      file_.inputs.push_back(port_of(*file_.graph, arg->at("name").text()));
    } else if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
      const std::string& name = content->at(kind + "_name").text();
      const std::string& value = content->at("arg").at("name").text();
      file_.weights.push_back({value, name, weight(name)});
      targets_[name] = value;
    } else if (kind != "constant_input" && kind != "token") {
      fail(ErrorKind::Unsupported, "the model has an input of the kind '{}'.", kind);
    }
  }

  Tensor weight(const std::string& name) const {
    for (const NamedTensors* named : {&weights_, &constants_})
      if (const auto found = named->find(name); found != named->end()) return found->second;
    damaged(format("it has no tensor '{}'", name));
  }

  void add_output(const JsonValue& spec) {
    const auto [kind, content] = member_of(spec);
    const JsonValue& arg = content->at("arg");
    if (kind == "user_output") {
      file_.outputs.push_back(&arg);
      file_.output_names.push_back("");
    } else if (kind == "buffer_mutation" || kind == "parameter_mutation") {
      const std::string& name =
          content->at(kind == "buffer_mutation" ? "buffer_name" : "parameter_name").text();
      const auto target = targets_.find(name);
      if (target == targets_.end()) damaged(format("'{}' is written, but not there", name));
      file_.mutations.push_back({arg.at("name").text(), target->second});
    } else {
      fail(ErrorKind::Unsupported, "the model has an output of the kind '{}'.", kind);
    }
  }

  // From the description of the containers that the module returns.
  void name_outputs() {
    std::vector<std::string> paths;
    for (const JsonValue& entry : file_.root.at("graph_module").at("module_call_graph").list()) {
      if (!entry.at("fqn").text().empty()) continue;
      const JsonValue* signature = entry.find("signature");
      if (!signature || !signature->is_object()) continue;
      const JsonValue tree = JsonValue::parse(signature->at("out_spec").text());
      if (tree.list().size() == 2) collect_paths(tree.list()[1], "", paths);
    }
    const bool fits = paths.size() == file_.outputs.size();
    for (size_t i = 0; i < file_.outputs.size(); ++i) {
      std::string path = fits ? paths[i] : std::to_string(i);
      const bool numbered = path.empty() || (path[0] >= '0' && path[0] <= '9');
      if (numbered) path = path.empty() ? "output" : format("output.{}", path);
      file_.output_names[i] = path;
    }
    drop_empty_outputs();
  }
  void drop_empty_outputs() {
    for (size_t i = file_.outputs.size(); i-- > 0;)
      if (member_of(*file_.outputs[i]).first == "as_none") {
        file_.outputs.erase(file_.outputs.begin() + static_cast<std::ptrdiff_t>(i));
        file_.output_names.erase(file_.output_names.begin() + static_cast<std::ptrdiff_t>(i));
      }
  }

  void collect_paths(const JsonValue& spec, const std::string& path,
                     std::vector<std::string>& paths) const {
    const JsonValue& type = spec.at("type");
    if (!type.is_text()) {
      paths.push_back(path);
      return;
    }
    std::vector<std::string> keys;
    const JsonValue& context = spec.at("context");
    const auto is_mapping = [&] {
      return type.text().ends_with("dict") || type.text().ends_with("OrderedDict");
    };
    if (is_mapping() && context.is_text()) {
      const JsonValue names = JsonValue::parse(context.text());
      if (names.is_list())
        for (const JsonValue& name : names.list())
          keys.push_back(name.is_text()                           ? name.text()
                         : name.is_number() && name.has_integer() ? std::to_string(name.integer())
                                                                  : "");
    }
    const JsonValue::List& children = spec.at("children_spec").list();
    for (size_t i = 0; i < children.size(); ++i) {
      const std::string key = i < keys.size() && !keys[i].empty() ? keys[i] : std::to_string(i);
      collect_paths(children[i], path.empty() ? key : format("{}.{}", path, key), paths);
    }
  }

  ExportFile& file_;
  const NamedTensors &weights_, &constants_;
  std::map<std::string, std::string> targets_;
};

}  // namespace

bool is_export_archive(const ZipFile& zip) {
  if (zip.find(kOlderProgram)) return true;
  return std::any_of(zip.entries().begin(), zip.entries().end(), [](const ZipFile::Entry& e) {
    return e.name.ends_with("archive_format") ||
           (e.name.ends_with(".json") && e.name.find("/models/") != std::string::npos);
  });
}

std::unique_ptr<const ExportFile> read_export(const ZipFile& zip) {
  const bool older = zip.find(kOlderProgram) != nullptr;
  const std::string root = root_of(zip), model = older ? "" : model_name(zip, root);
  auto file = std::make_unique<ExportFile>(
      JsonValue::parse(older ? with_texts(text_in(zip, std::string(kOlderProgram)))
                             : text_in(zip, root + "models/" + model + ".json")));
  check_version(file->root);
  file->graph = &file->root.at("graph_module").at("graph");
  const auto tensors = [&](const char* kind, const char* older_name) {
    return older ? tensors_of_older(zip, older_name)
                 : tensors_of(zip, format("{}data/{}/", root, kind),
                              format("{}_{}_config.json", model, kind));
  };
  Reader(*file, tensors("weights", "serialized_state_dict.pt"),
         tensors("constants", "serialized_constants.pt"))
      .run();
  return file;
}

int64_t dtype_number(int64_t in_file) {
  if (in_file == 13) return 15;  // bfloat16
  user_check(in_file >= 1 && in_file <= 12, ErrorKind::Unsupported,
             "the archive has a dtype that Oar does not compute with: {}.", in_file);
  return in_file - 1;
}

std::pair<std::string, const JsonValue*> member_of(const JsonValue& one) {
  const JsonValue::Object& members = one.object();
  if (members.size() != 1) damaged("a value has not one kind");
  return {members.begin()->first, &members.begin()->second};
}

std::string table_name(std::string_view target) {
  static const std::map<std::string_view, std::string_view> symbols = {
      {"torch.sym_max", "builtins.max"},     {"torch.sym_min", "builtins.min"},
      {"torch.sym_float", "builtins.float"}, {"torch.sym_int", "builtins.int"},
      {"torch.sym_not", "operator.not_"},    {"torch.sym_ite", "builtins.if_else"},
      {"torch._sym_sqrt", "math.sqrt"},
  };
  if (const auto found = symbols.find(target); found != symbols.end())
    return std::string(found->second);
  if (target.starts_with("_operator.")) return std::string(target.substr(1));
  constexpr std::string_view kOps = "torch.ops.";
  if (!target.starts_with(kOps)) return std::string(target);
  target.remove_prefix(kOps.size());
  for (const std::string_view space : {"aten.", "torchvision."})
    if (target.starts_with(space)) {
      target.remove_prefix(space.size());
      return std::string(target.substr(0, std::min(target.find('.'), target.size())));
    }
  return std::string(target);
}

}  // namespace oar::pytorch
