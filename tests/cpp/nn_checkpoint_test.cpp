#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "autograd_util.h"
#include "oar/base/file.h"
#include "oar/formats/checksum.h"
#include "oar/formats/zip.h"
#include "oar/oar.h"

namespace oar::test {
namespace {

struct Net : nn::Module {
  nn::Linear first{3, 8}, second{8, 1};
  nn::Dropout drop{0.3};
  Net() {
    register_module("first", first);
    register_module("drop", drop);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override { return second(drop(relu(first(x)))); }
};

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "/oar_checkpoints";
    std::filesystem::remove_all(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  // Trains up to a step, from the last checkpoint if there is one; saves every three steps.
  Values train(int64_t steps, int workers) {
    nn::restart_names();
    nn::seed_all(3);
    Net net;
    const auto rate = std::make_shared<nn::lr::ExponentialDecay>(0.05, 0.9);
    nn::Adam optimizer(net.parameters(), {.learning_rate = rate});
    const nn::TensorDataset data({randn({20, 3}), randn({20, 1})});
    nn::DataLoader loader(data, {.batch_size = 4, .shuffle = true, .num_workers = workers});
    nn::CheckpointManager manager(folder, {.max_to_keep = 2});
    manager.add("model", net).add("optimizer", optimizer).add("loader", loader);
    const auto found = manager.restore();
    int64_t step = found ? found->step : 0;
    while (step < steps)
      for (const nn::Batch& batch : loader) {
        run_backward(mse_loss(net(batch[0]), batch[1]));
        optimizer.step();
        optimizer.zero_grad();
        rate->step();
        if (++step % 3 == 0) manager.save(step, StateTree(step));
        if (step == steps) break;
      }
    Values all;
    for (const Tensor& parameter : net.parameters())
      for (const double value : values_of(parameter)) all.push_back(value);
    return all;
  }
  void damage(const std::string& path, size_t at) {
    std::string content = read_file(path);
    content[at] = static_cast<char>(content[at] ^ 1);
    std::ofstream(path, std::ios::binary) << content;
  }

  std::string folder;
};

TEST_F(CheckpointTest, ResumesToTheBit) {
  const Values whole = train(14, 0);
  for (const int workers : {0, 2}) {
    std::filesystem::remove_all(folder);
    train(7, workers);
    EXPECT_EQ(nn::CheckpointManager(folder).steps(), (std::vector<int64_t>{3, 6}));
    EXPECT_EQ(train(11, 0).size(), whole.size());
    EXPECT_EQ(nn::CheckpointManager(folder).steps(), (std::vector<int64_t>{6, 9}));
    EXPECT_EQ(train(14, workers), whole);
  }
}

TEST_F(CheckpointTest, DamageIsNamedAndNothingIsRestored) {
  nn::restart_names();
  Net net;
  nn::CheckpointManager manager(folder);
  manager.add("model", net);
  EXPECT_FALSE(manager.restore());
  manager.save(1);
  nn::init::constant(net.first.bias, 5);
  manager.save(2, StateTree(StateTree::List{StateTree("epoch"), StateTree(4)}));
  const std::string path = folder + "/step_00000002/model.pdparams";
  damage(path, read_file(path).size() / 2);
  const Error error = error_of([&] { manager.restore(); });
  EXPECT_TRUE(contains(error.text(), "'" + path + "' is damaged")) << error.text();
  EXPECT_TRUE(contains(error.text(), "[1, 2]")) << error.text();
  EXPECT_EQ(values_of(net.first.bias)[0], 5);
  const auto found = manager.restore(std::nullopt, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1);
  EXPECT_EQ(values_of(net.first.bias)[0], 0);
  std::filesystem::resize_file(folder + "/step_00000001/checkpoint.json", 20);
  EXPECT_TRUE(
      contains(error_of([&] { manager.restore(1); }).text(), "checkpoint.json' is damaged"));
  EXPECT_EQ(error_of([&] { manager.restore(7); }).kind(), ErrorKind::NotFound);
}

TEST_F(CheckpointTest, OtherObjectsAreRefusedBeforeAnythingChanges) {
  nn::restart_names();
  Net net;
  nn::Linear other(2, 2);
  nn::CheckpointManager(folder).add("model", net).save(1);
  nn::CheckpointManager manager(folder);
  manager.add("model", other);
  const std::string text = error_of([&] { manager.restore(); }).text();
  EXPECT_TRUE(contains(text, "does not fit 'model.pdparams'")) << text;
  EXPECT_TRUE(contains(text, "missing [bias, weight]")) << text;
  nn::CheckpointManager more(folder);
  nn::lr::StepDecay rate(0.1, 2);
  more.add("model", net).add("rate", rate);
  EXPECT_TRUE(contains(error_of([&] { more.restore(); }).text(), "has no rate.pdstate"));
  EXPECT_THROW(more.add("model", net), Error);
  EXPECT_THROW(more.add("extra", net), Error);
  EXPECT_THROW(more.save(-1), Error);
}

TEST_F(CheckpointTest, LeftoversOfKilledProcessesAreRemoved) {
  nn::restart_names();
  Net net;
  nn::CheckpointManager(folder).add("model", net).save(4);
  // A process died while it wrote a checkpoint, and another while it replaced one.
  std::filesystem::create_directories(folder + "/.new-5-77.0");
  std::filesystem::rename(folder + "/step_00000004", folder + "/.old-step_00000004-77.1");
  nn::CheckpointManager manager(folder);
  EXPECT_FALSE(std::filesystem::exists(folder + "/.new-5-77.0"));
  EXPECT_EQ(manager.steps(), (std::vector<int64_t>{4}));
  EXPECT_TRUE(manager.add("model", net).restore());
}

// ---- files ----------------------------------------------------------------------------------------

TEST(Checksum, KnownValues) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(1000, 'a')),
            "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
  EXPECT_EQ(crc32("123456789"), 0xcbf43926U);
}

// A zip file with one array that is stored as it is, as numpy.savez writes it.
std::string stored_npz(const std::string& array) {
  const auto number = [](uint64_t value, size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  const std::string name = "x.npy", sum = number(crc32(array), 4), size = number(array.size(), 4);
  const std::string common = number(0, 2) + number(0, 2) + number(0, 4) + sum + size + size +
                             number(name.size(), 2) + number(0, 2);
  const std::string entry = "PK\x03\x04" + number(20, 2) + common + name + array;
  const std::string list = "PK\x01\x02" + number(20, 2) + number(20, 2) + common +
                           std::string(10, '\0') + number(0, 4) + name;
  return entry + list + "PK\x05\x06" + std::string(4, '\0') + number(1, 2) + number(1, 2) +
         number(list.size(), 4) + number(entry.size(), 4) + number(0, 2);
}

TEST(Npz, StoredArraysAndDamage) {
  const std::string path = testing::TempDir() + "/oar_stored.npy";
  save_npy(path, ones({2, 3}));
  std::string file = stored_npz(read_file(path));
  EXPECT_EQ(parse_npz(file).at("x").shape(), (Shape{2, 3}));
  for (size_t size = 0; size < file.size(); size += 7)
    EXPECT_THROW(parse_npz(file.substr(0, size)), Error) << size;
  file[150] ^= 1;
  EXPECT_TRUE(contains(error_of([&] { parse_npz(file); }).text(), "checksum"));
  // "aaaaaaaaaa", as zlib deflates it, and damaged.
  EXPECT_EQ(inflate(std::string_view("\x4b\x4c\x84\x01\x00", 5), 10), "aaaaaaaaaa");
  EXPECT_THROW(inflate("\x4b\x4c", 10), Error);
  std::filesystem::remove(path);
}

TEST(Pickle, RoundTrip) {
  StateTree tree;
  tree.set("none", StateTree());
  tree.set("yes", true);
  tree.set("small", -5);
  tree.set("large", int64_t{-1} << 40);
  tree.set("word", ~uint64_t{0});
  tree.set("real", 0.1);
  tree.set("text", "größe");
  tree.set("half", cast(ones({3}), DType::BFloat16));
  tree.set("strided", transpose(randn({2, 3}), {1, 0}));
  tree.set("list",
           StateTree::List{StateTree(1), StateTree(StateTree::Dict{{"x", StateTree(2.5)}})});
  const StateTree found = parse_pickle(to_pickle(tree));
  EXPECT_TRUE(found.at("none").is_none());
  EXPECT_TRUE(found.at("yes").boolean());
  EXPECT_EQ(found.at("small").integer(), -5);
  EXPECT_EQ(found.at("large").integer(), int64_t{-1} << 40);
  EXPECT_EQ(found.at("word").word(), ~uint64_t{0});
  EXPECT_EQ(found.at("real").number(), 0.1);
  EXPECT_EQ(found.at("text").text(), "größe");
  EXPECT_EQ(found.at("half").tensor().dtype(), DType::BFloat16);
  EXPECT_EQ(values_of(found.at("strided").tensor()), values_of(tree.at("strided").tensor()));
  EXPECT_EQ(found.at("list").list()[1].at("x").number(), 2.5);
  EXPECT_THROW(found.at("missing"), Error);
  EXPECT_THROW(found.at("text").number(), Error);
}

TEST(Pickle, OtherNamesAndDamageAreRefused) {
  const std::string call =
      std::string("\x80\x02") + "cos\nsystem\nX" + std::string("\x02\0\0\0", 4) + "ls\x85R.";
  EXPECT_TRUE(contains(error_of([&] { parse_pickle(call); }).text(), "'os.system'"));
  const std::string whole = to_pickle(StateTree(StateTree::Dict{{"x", StateTree(ones({2, 2}))}}));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse_pickle(whole.substr(0, size)), Error) << size;
  // A list that holds itself, and one that doubles thirty times.
  EXPECT_THROW(parse_pickle("]q" + std::string("\0h\0a.", 5)), Error);
  std::string bomb = "]";
  for (int i = 0; i < 30; ++i)
    bomb += "\x94](h" + std::string(1, static_cast<char>(i)) + "h" +
            std::string(1, static_cast<char>(i)) + "e";
  EXPECT_THROW(parse_pickle(bomb + "."), Error);
  EXPECT_THROW(parse_pickle(std::string(1000000, ']') + std::string(999999, 'a') + "."), Error);
}

}  // namespace
}  // namespace oar::test
