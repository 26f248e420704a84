// Saved models: programs for deployment, the reader, .npy files.
#include "oar/runtime/model.h"

#include <filesystem>

#include "capture_util.h"
#include "oar/base/file.h"
#include "oar/compiler/deploy.h"
#include "oar/formats/npy.h"
#include "oar/formats/safetensors.h"
#include "oar/ir/parse.h"
#include "oar/ir/region.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/runtime/runner.h"

namespace oar {
namespace {

// What a deployed library could not run of it: it has kernels and no decompositions, but for calls of programs.
std::vector<std::string> not_deployable(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& call : program.body.instructions) {
    for_each_program(call.attributes.args(), [&](const Closure& c) {
      for (std::string& name : not_deployable(program_of(c))) names.push_back(std::move(name));
    });
    if (!call.op->def().view && !has_regions(call) && call.op->kernels(0).empty())
      names.push_back(call.op->name());
  }
  return names;
}

constexpr const char* kOpen = R"(program f<N ~ 4>(%x: float32[N, 8]) -> (%a: float32[N]) {
  %a = vecdot(%x, %x, axis=1) : float32[N]
})";

TEST(Deployment, ExpandsAtOpenSizes) {
  const Program program = parse_program(kOpen), deployed = for_deployment(program);
  expect_sound(deployed);
  EXPECT_EQ(not_deployable(program), std::vector<std::string>{"vecdot"});
  EXPECT_EQ(not_deployable(deployed), std::vector<std::string>());
  for (const int64_t rows : {1, 4, 5, 0}) {
    const Tensor x = numbers({rows, 8});
    expect_same(Runner(deployed).run({{x}})[0], Executor(program).run({{x}})[0]);
  }
}

TEST(Deployment, ExpandsInsideOfRegions) {
  const Program program =
      parse_program(R"(program f<N ~ 4>(%p: bool[], %x: float32[N, 8]) -> (%r: float32[N]) {
  %r = switch_case(%p, [%x], branches=[
    program no(%x: float32[N, 8]) -> (%a: float32[N]) {
      %a = vecdot(%x, %x, axis=1) : float32[N]
    },
    program yes(%x: float32[N, 8]) -> (%a: float32[N]) {
      %a = sum(%x, axis=[1], dtype=None, keepdim=False) : float32[N]
    }
  ], trace=False) : float32[N]
})");
  const Program deployed = for_deployment(program);
  expect_sound(deployed);
  EXPECT_EQ(not_deployable(program), std::vector<std::string>{"vecdot"});
  EXPECT_EQ(not_deployable(deployed), std::vector<std::string>());
  const Tensor x = numbers({3, 8});
  for (const bool choice : {false, true}) {
    const Tensor p = Tensor::scalar(int64_t{choice}, DType::Bool);
    expect_same(Runner(deployed).run({{p, x}})[0], Executor(program).run({{p, x}})[0]);
  }
}

// Every op of the registry that a program for inference can call.
TEST(Deployment, EveryOpHasKernelsOrParts) {
  std::vector<std::string> problems;
  for (const Op* op : Registry::get().all()) {
    if (!op->is_built_in() || !op->def().samples || op->has(Trait::Inplace)) continue;
    for (const Sample& sample : op->def().samples()) {
      const Frame frame = sample.make(op->schema(), DType::Float32, 11);
      std::vector<InputSpec> specs;
      for_each_tensor(frame.args(),
                      [&](const Tensor& t) { specs.push_back({t.dtype(), t.shape()}); });
      const auto call = [&](const Tensors& given) {
        Frame args = frame.clone();
        size_t next = 0;
        for (size_t i = 0; i < frame.size(); ++i) {
          if (frame[i].is_tensor()) args.set_tensor(i, given[next++]);
          if (!frame[i].is_tensors()) continue;
          Tensors list;
          for (const Tensor& t : frame[i].as_tensors())
            list.push_back(t.defined() ? given[next++] : t);
          args.set_tensors(i, std::move(list));
        }
        const Outputs made = dispatch(*op, args.args());
        Tensors outputs;
        for (const Tensor& t : made)
          if (t.defined()) outputs.push_back(t);
        return outputs;
      };
      Program program;
      try {
        program = capture(call, specs, op->name());
      } catch (const Error&) {
        break;  // it looks at values: there is no program to deploy
      }
      const std::vector<std::string> left = not_deployable(for_deployment(program));
      if (left.empty()) continue;
      problems.push_back(op->name() + ": " + join(left, ", "));
      break;
    }
  }
  EXPECT_TRUE(problems.empty()) << join(problems, "\n");
}

const std::string kHeader =
    R"({"format": "oar program", "version": 1, "feed": ["y", "x"], "fetch": ["sum"], "names": {"a": "x", "b": "y", "w": "weight"}})"
    "\n";
const std::string kText =
    R"(program f<N ~ 4>(%a: float32[N, 2], %b: float32[N, 2], state %w: float32[2]) -> (%s: float32[N, 2]) {
  %t = subtract(%a, %b) : float32[N, 2]
  %v = broadcast_to(%w, shape=[N, 2]) : float32[N, 2]
  %s = multiply(%t, %v) : float32[N, 2]
})";
NamedTensors weights() {
  return {{"weight", Tensor::from_vector<float>({2, 3}, Shape{2}, DType::Float32)}};
}

TEST(Model, TakesInputsInTheOrderOfTheirNames) {
  const Model model = Model::parse(kHeader + kText, weights());
  ASSERT_EQ(model.inputs().size(), 2u);
  EXPECT_EQ(model.inputs()[0].str(), "y: float32[N, 2]");
  EXPECT_EQ(model.outputs()[0].str(), "sum: float32[N, 2]");
  const Tensor y = numbers({3, 2}), x = numbers({3, 2}, 1.0);
  const Tensor wanted = (x - y) * weights()["weight"];
  expect_same(model.run({y, x})[0], wanted);
}

TEST(Model, ReadsFiles) {
  const auto folder = std::filesystem::temp_directory_path() / "oar_model_test";
  std::filesystem::create_directories(folder);
  const std::string prefix = (folder / "model").string();
  write_file_atomic(prefix + ".pdmodel", kHeader + kText);
  save_safetensors(prefix + ".pdiparams", weights());
  const Tensor x = numbers({1, 2});
  EXPECT_EQ(Model::load(prefix).run({x, x})[0].to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_NE(error_of([&] { Model::load(prefix + "x"); }).find("modelx.pdmodel"), std::string::npos);
  const std::string file = (folder / "x.npy").string();
  for (const Tensor& t :
       {numbers({2, 3}), Tensor::from_vector<int64_t>({}, Shape{0, 4}, DType::Int64),
        Tensor::scalar(2.5, DType::Float64)}) {
    save_npy(file, t);
    expect_same(load_npy(file), t);
  }
  std::filesystem::remove_all(folder);
}

TEST(Model, RefusesWhatDoesNotFit) {
  const auto said = [](const std::string& text, const NamedTensors& given = weights()) {
    return error_of([&] { Model::parse(text, given); });
  };
  EXPECT_NE(said(kHeader + kText, {}).find("lack weight"), std::string::npos);
  EXPECT_NE(said(kHeader + kText, {{"weight", numbers({3})}}).find("reads weight as float32[2]"),
            std::string::npos);
  EXPECT_NE(said("{}\n" + kText).find("no program of Oar"), std::string::npos);
  EXPECT_NE(said("").find("expected"), std::string::npos);
  std::string other = kHeader;
  other.replace(other.find("\"y\", \"x\""), 8, "\"y\", \"y\"");
  EXPECT_NE(said(other + kText).find("names 2 inputs"), std::string::npos);
  other.replace(other.find("\"y\", \"y\""), 8, "\"y\", \"z\"");
  EXPECT_NE(said(other + kText).find("input z"), std::string::npos);
  const Model model = Model::parse(kHeader + kText, weights());
  EXPECT_NE(error_of([&] { model.run({numbers({3, 2})}); }).find("takes 2 inputs"),
            std::string::npos);
  EXPECT_NE(error_of([&] { model.run({numbers({3, 2}), numbers({4, 2})}); }), "no error");
}

TEST(Npy, RefusesDamagedFiles) {
  const auto folder = std::filesystem::temp_directory_path() / "oar_npy_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "x.npy").string();
  save_npy(path, numbers({2, 3}));
  const std::string file = read_file(path);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(error_of([&] { parse_npy(std::string_view(file).substr(0, size)); }), "no error")
        << size;
  std::string huge = file;
  huge.replace(huge.find("(2,3,)"), 6, "(2,99)");
  EXPECT_NE(error_of([&] { parse_npy(huge); }).find("another size"), std::string::npos);
  huge.replace(huge.find("<f4"), 3, ">f4");
  EXPECT_NE(error_of([&] { parse_npy(huge); }).find(">f4"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace oar
