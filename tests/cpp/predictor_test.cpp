// Predictors in C++ and C: names, clones, the caller's memory.
#include "oar/runtime/predictor.h"

#include <filesystem>
#include <thread>

#include "capture_util.h"
#include "oar/base/file.h"
#include "oar/formats/safetensors.h"
#include "oar/runtime/oar_c.h"

namespace oar {
namespace {

const std::string kProgram =
    R"({"format": "oar program", "version": 1, "feed": ["x"], "fetch": ["y", "t"], "names": {"w": "weight"}})"
    "\n"
    "program f<N ~ 4>(%x: float32[N, 2], state %w: float32[2]) -> (%y: float32[N, 2], %t: float32[2, N]) {\n"
    "  %v = broadcast_to(%w, shape=[N, 2]) : float32[N, 2]\n"
    "  %y = multiply(%x, %v) : float32[N, 2]\n"
    "  %t = transpose(%y, perm=[1, 0]) : float32[2, N]\n}\n";

NamedTensors weights() {
  return {{"weight", Tensor::from_vector<float>({2, 3}, Shape{2}, DType::Float32)}};
}

TEST(Predictor, ReadsTheCallersMemory) {
  Predictor predictor(Model::parse(kProgram, weights()));
  EXPECT_NE(error_of([&] { predictor.run(); }).find("input x"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)predictor.output("y"); }).find("no output yet"),
            std::string::npos);
  std::vector<float> x = {1, 10, 100, 1000};
  predictor.set_input("x", DType::Float32, Shape{2, 2}, x.data());
  x[0] = 5;  // it is not copied
  for (int i = 0; i < 3; ++i) predictor.run();
  EXPECT_EQ(predictor.output("y").to_vector<double>(), (std::vector<double>{10, 30, 200, 3000}));
  const Tensor& t = predictor.output("t");
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(static_cast<const float*>(t->data)[1], 200);
  EXPECT_EQ(x, (std::vector<float>{5, 10, 100, 1000}));
}

TEST(Predictor, SaysWhatIsWrong) {
  Predictor predictor(Model::parse(kProgram, weights()));
  std::vector<float> x(8);
  const auto said = [&](auto&& body) { return error_of(body); };
  EXPECT_NE(said([&] { predictor.set_input("z", numbers({1, 2})); }).find("no 'z' there; it has x"),
            std::string::npos);
  EXPECT_NE(
      said([&] { predictor.set_input("x", DType::Float32, Shape{1, 2}, nullptr); }).find("null"),
      std::string::npos);
  const void* odd = reinterpret_cast<const char*>(x.data()) + 1;
  EXPECT_NE(
      said([&] { predictor.set_input("x", DType::Float32, Shape{1, 2}, odd); }).find("aligned"),
      std::string::npos);
  predictor.set_input("x", DType::Int32, Shape{1, 2}, x.data());
  EXPECT_NE(said([&] { predictor.run(); }), "no error");
}

TEST(Predictor, ClonesRunInThreads) {
  const Predictor first(Model::parse(kProgram, weights()));
  std::vector<std::vector<double>> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      Predictor own = first.clone();
      const std::vector<float> x(2 * (i + 1), static_cast<float>(i));
      for (int repeat = 0; repeat < 50; ++repeat) {
        own.set_input("x", DType::Float32, Shape{static_cast<int64_t>(i) + 1, 2}, x.data());
        own.run();
      }
      found[i] = own.output("y").to_vector<double>();
    });
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), 2 * (i + 1));
    EXPECT_EQ(found[i][0], 2.0 * static_cast<double>(i));
    EXPECT_EQ(found[i][1], 3.0 * static_cast<double>(i));
  }
}

TEST(Predictor, InC) {
  const auto folder = std::filesystem::temp_directory_path() / "oar_c_test";
  std::filesystem::create_directories(folder);
  const std::string prefix = (folder / "model").string();
  write_file_atomic(prefix + ".pdmodel", kProgram);
  save_safetensors(prefix + ".pdiparams", weights());
  oar_predictor* predictor = oar_predictor_create(prefix.c_str(), nullptr);
  ASSERT_NE(predictor, nullptr) << oar_last_error();
  EXPECT_STREQ(oar_predictor_input_name(predictor, 0), "x");
  EXPECT_EQ(oar_predictor_input_name(predictor, 1), nullptr);
  EXPECT_STREQ(oar_predictor_output_name(predictor, 1), "t");
  const float x[] = {1, 10, 100, 1000};
  const int64_t shape[] = {2, 2};
  oar_tensor_view view, again;
  ASSERT_EQ(oar_predictor_set_input(predictor, "x", "float32", shape, 2, x), 0) << oar_last_error();
  ASSERT_EQ(oar_predictor_run(predictor), 0) << oar_last_error();
  ASSERT_EQ(oar_predictor_output(predictor, "y", &view), 0);
  ASSERT_EQ(oar_predictor_output(predictor, "t", &again), 0);
  EXPECT_STREQ(view.dtype, "float32");
  EXPECT_EQ(view.rank, 2u);
  EXPECT_EQ(view.shape[0], 2);
  EXPECT_EQ(static_cast<const float*>(view.data)[3], 3000);
  EXPECT_EQ(static_cast<const float*>(again.data)[1], 200);
  EXPECT_EQ(oar_predictor_set_input(predictor, "x", "float99", shape, 2, x), 1);
  EXPECT_NE(std::string(oar_last_error()).find("'float99' is not a dtype"), std::string::npos);
  oar_predictor* clone = oar_predictor_clone(predictor);
  oar_predictor_free(predictor);
  EXPECT_EQ(oar_predictor_run(clone), 1);  // a clone has no inputs yet
  oar_predictor_free(clone);
  oar_predictor_free(nullptr);
  EXPECT_EQ(oar_predictor_create("/nowhere/model.oar", nullptr), nullptr);
  EXPECT_NE(std::string(oar_last_error()).find("/nowhere/model.oar"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace oar
