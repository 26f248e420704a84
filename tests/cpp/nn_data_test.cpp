#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "autograd_util.h"
#include "image_files.h"
#include "oar/oar.h"

namespace oar::test {
namespace {

using Numbers = std::vector<int64_t>;

// Values that NumPy printed.
TEST(NumpyRandom, DrawsWhatNumpyDraws) {
  nn::NumpyRandom random(7);
  EXPECT_EQ(random.permutation(10), (Numbers{8, 5, 0, 2, 1, 9, 7, 3, 6, 4}));
  EXPECT_EQ(random.randint(-3, 90, 6), (Numbers{39, 87, 5, 36, 65, 45}));
  const StateTree state = random.state();
  const Numbers next = random.permutation(1000);
  random.set_state(parse_pickle(to_pickle(state)));
  EXPECT_EQ(random.permutation(1000), next);
  EXPECT_THROW(random.set_state(StateTree(StateTree::List{})), Error);
  EXPECT_THROW(random.randint(3, 3, 1), Error);
}

class Counting : public nn::Dataset {
 public:
  explicit Counting(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  nn::Sample get(int64_t index) const override {
    if (index == broken) throw std::runtime_error("sample 13 is broken");
    ++calls;
    // A number and a random one.
    return {Tensor::scalar(index, DType::Int64), rand({1})};
  }
  int64_t broken = -1;
  mutable std::atomic<int> calls{0};

 private:
  int64_t size_;
};

std::pair<Numbers, Values> pass_over(nn::DataLoader& loader) {
  Numbers order;
  Values drawn;
  for (const nn::Batch& batch : loader) {
    for (const int64_t number : batch[0].to_vector<int64_t>()) order.push_back(number);
    for (const double number : values_of(batch[1])) drawn.push_back(number);
  }
  return {order, drawn};
}

TEST(DataLoaderThreads, OrderAndRandomNumbersDoNotDependOnWorkers) {
  const Counting data(23);
  std::vector<std::pair<Numbers, Values>> all;
  for (const int workers : {0, 1, 3}) {
    nn::seed_all(4);
    nn::DataLoader loader(data, {.batch_size = 4, .shuffle = true, .num_workers = workers});
    EXPECT_EQ(loader.size(), 6);
    all.push_back(pass_over(loader));
    all.push_back(pass_over(loader));
  }
  EXPECT_EQ(all[0].first.size(), 23U);
  EXPECT_NE(all[0], all[1]) << "each pass has its own order";
  EXPECT_EQ(all[0], all[2]);
  EXPECT_EQ(all[1], all[3]);
  EXPECT_EQ(all[0], all[4]);
  EXPECT_EQ(all[1], all[5]);
}

TEST(DataLoaderThreads, AnErrorComesWhereItsBatchWouldHave) {
  for (const int workers : {0, 2}) {
    Counting data(32);
    data.broken = 13;
    nn::DataLoader loader(data, {.batch_size = 4, .num_workers = workers});
    int batches = 0;
    try {
      for (const nn::Batch& batch : loader) batches += batch.empty() ? 0 : 1;
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "sample 13 is broken");
    }
    EXPECT_EQ(batches, 3);
    data.broken = -1;
    EXPECT_EQ(pass_over(loader).first.size(), 32U) << "the next pass is a whole one";
  }
}

TEST(DataLoaderThreads, StopsInTheMiddleAndStaysWithinItsPrefetch) {
  const Counting data(1000);
  nn::DataLoader loader(data, {.batch_size = 1, .num_workers = 2, .prefetch_factor = 2});
  for (const nn::Batch& batch : loader) {
    EXPECT_EQ(batch[0].to_vector<int64_t>(), Numbers{0});
    break;
  }
  EXPECT_LE(data.calls, 8);
}

TEST(DataLoader, ContinuesInTheMiddleOfAPass) {
  const Counting data(20);
  nn::seed_all(9);
  nn::DataLoader loader(data, {.batch_size = 3, .shuffle = true, .drop_last = true});
  EXPECT_EQ(loader.size(), 6);
  pass_over(loader);
  StateTree state, random;
  std::vector<Numbers> rest;
  int count = 0;
  for (const nn::Batch& batch : loader) {
    if (++count > 2) rest.push_back(batch[0].to_vector<int64_t>());
    if (count == 2) state = loader.state_dict();
    if (count == 2) random = nn::random_states();
  }
  const Numbers after = pass_over(loader).first;
  nn::seed_all(1);
  nn::DataLoader resumed(data, {.batch_size = 3, .shuffle = true, .drop_last = true});
  resumed.load_state_dict(parse_pickle(to_pickle(state)));
  nn::set_random_states(random);
  std::vector<Numbers> found;
  for (const nn::Batch& batch : resumed) found.push_back(batch[0].to_vector<int64_t>());
  EXPECT_EQ(found, rest);
  EXPECT_EQ(pass_over(resumed).first, after);
}

TEST(DataLoader, SamplersAndMistakes) {
  nn::seed_all(2);
  EXPECT_EQ(nn::SequenceSampler(3).order(), (Numbers{0, 1, 2}));
  EXPECT_EQ(nn::RandomSampler(5, true, 40).order().size(), 40U);
  Numbers chosen = nn::SubsetRandomSampler({4, 7, 9}).order();
  std::sort(chosen.begin(), chosen.end());
  EXPECT_EQ(chosen, (Numbers{4, 7, 9}));
  const Counting data(4);
  EXPECT_THROW(nn::RandomSampler(5, false, 6), Error);
  EXPECT_THROW(nn::DataLoader(data, {.batch_size = 0}), Error);
  EXPECT_THROW(
      nn::DataLoader(data, {.shuffle = true, .sampler = std::make_shared<nn::SequenceSampler>(4)}),
      Error);
  const nn::TensorDataset rows({ones({3, 2}), zeros({3})});
  EXPECT_EQ(rows.get(1)[0].shape(), (Shape{2}));
  EXPECT_THROW(rows.get(3), Error);
  EXPECT_THROW(nn::TensorDataset({ones({3}), ones({4})}), Error);
}

TEST(DataLoader, ImagesInFolders) {
  const std::string root = testing::TempDir() + "/oar_images";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/cat");
  std::filesystem::create_directories(root + "/ant");
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(root + "/" + name, std::ios::binary) << content;
  };
  write("cat/1.jpg", image_files::colour_jpeg());
  write("cat/notes.txt", "no image");
  write("ant/2.jpg", image_files::colour_jpeg());
  const nn::ImageFolder folder(root, {.size = std::pair<int64_t, int64_t>(8, 6)});
  EXPECT_EQ(folder.classes(), (std::vector<std::string>{"ant", "cat"}));
  nn::DataLoader loader(folder, {.batch_size = 2});
  for (const nn::Batch& batch : loader) {
    EXPECT_EQ(batch[0].shape(), (Shape{2, 3, 8, 6}));
    EXPECT_EQ(batch[1].to_vector<int64_t>(), (Numbers{0, 1}));
  }
  EXPECT_EQ(nn::ImageFolder(root).get(0)[0].shape(), (Shape{3, 24, 20}));
  write("cat/1.jpg", "damaged");
  EXPECT_TRUE(contains(error_of([&] { folder.get(1); }).text(), "cat/1.jpg"));
  EXPECT_THROW(nn::ImageFolder(root + "/cat"), Error);
  EXPECT_THROW(nn::ImageFolder(root + "/nothing"), Error);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace oar::test
