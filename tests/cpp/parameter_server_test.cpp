// Tables, filters, the log and the recovery of parameter servers, without their transport.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "oar/base/error.h"
#include "oar/parameter_server/core.h"
#include "oar/parameter_server/keys.h"
#include "oar/parameter_server/records.h"
#include "oar/parameter_server/table.h"

namespace oar::parameter_server {
namespace {

namespace fs = std::filesystem;

// A folder that ends with the test.
struct Folder {
  Folder() {
    std::string text = (fs::temp_directory_path() / "oar_server_XXXXXX").string();
    path = ::mkdtemp(text.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

TableOptions sparse_options(const std::string& name, uint64_t width = 2) {
  TableOptions options;
  options.name = name;
  options.width = width;
  options.rule.learning_rate = 1.0F;
  options.initial = {InitialKind::Constant, 0.0F, 0.0F, 0};
  return options;
}

std::vector<float> pulled(const SparseTable& table, std::vector<uint64_t> keys) {
  std::vector<float> values(keys.size() * table.options().width);
  table.pull(keys, values.data());
  return values;
}

void push(SparseTable* table, std::vector<uint64_t> keys, std::vector<float> gradients,
          std::vector<float> shows = {}, std::vector<float> clicks = {}) {
  table->push(keys, gradients.data(), shows, clicks, 1.0F);
}

TEST(ParameterServerTable, FirstValuesDependOnTheKeyAlone) {
  TableOptions options = sparse_options("a", 3);
  options.initial = {InitialKind::Gaussian, 0.0F, 0.5F, 7};
  const SparseTable one(options, {0, 1}, "");
  SparseTable other(options, {0, 1}, "");
  const auto first = pulled(one, {5, 1234567890123456789ULL});
  push(&other, {1234567890123456789ULL}, {0, 0, 0});
  EXPECT_EQ(first, pulled(other, {5, 1234567890123456789ULL}));
  std::vector<uint64_t> keys(20000);
  std::iota(keys.begin(), keys.end(), 0);
  double sum = 0, squares = 0;
  for (const float x : pulled(one, keys)) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_NEAR(sum / 60000, 0.0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 60000), 0.5, 0.01);
}

TEST(ParameterServerTable, GradientsOfOneKeyAreAdded) {
  TableOptions options = sparse_options("a");
  options.rule.kind = RuleKind::Adagrad;
  SparseTable twice(options, {0, 1}, ""), once(options, {0, 1}, "");
  push(&twice, {9, 4, 9}, {1, 2, 5, 5, 3, 4});
  push(&once, {4, 9}, {5, 5, 4, 6});
  EXPECT_EQ(pulled(twice, {4, 9}), pulled(once, {4, 9}));
}

// The formula of the paper, in double precision.
TEST(ParameterServerTable, AdamIsThatOfThePaper) {
  TableOptions options = sparse_options("a", 1);
  options.rule.kind = RuleKind::Adam;
  SparseTable table(options, {0, 1}, "");
  double m = 0, v = 0, w = 0;
  for (int step = 1; step <= 5; ++step) {
    const double g = 0.3 * step - 1;
    const std::vector<uint64_t> keys{3};
    const auto gradient = static_cast<float>(g);
    table.push(keys, &gradient, {}, {}, 0.1F);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -=
        0.1 * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
    EXPECT_NEAR(pulled(table, {3})[0], w, 1e-5);
  }
}

TEST(ParameterServerTable, EntriesDecideWhichKeysGetARow) {
  TableOptions options = sparse_options("a", 1);
  options.initial.value = 2.0F;
  options.entry = {EntryKind::Count, 3.0F};
  SparseTable counted(options, {0, 1}, "");
  for (int i = 0; i < 2; ++i) push(&counted, {8}, {1});
  EXPECT_EQ(pulled(counted, {8}), std::vector<float>{0});
  EXPECT_EQ(counted.size().rows, 0U);
  EXPECT_EQ(counted.size().candidates, 1U);
  push(&counted, {8}, {0.5F});
  EXPECT_EQ(pulled(counted, {8}), std::vector<float>{1.5F});
  EXPECT_EQ(counted.size().candidates, 0U);

  options.entry = {EntryKind::Probability, 0.25F};
  SparseTable drawn(options, {0, 1}, "");
  std::vector<uint64_t> keys(4000);
  std::iota(keys.begin(), keys.end(), 0);
  push(&drawn, keys, std::vector<float>(4000, 0.0F));
  EXPECT_NEAR(static_cast<double>(drawn.size().rows), 1000, 120);
  for (int i = 0; i < 40; ++i) push(&drawn, keys, std::vector<float>(4000, 0.0F));
  EXPECT_EQ(drawn.size().rows, 4000U);
}

TEST(ParameterServerTable, ShrinkRemovesLowScoresAndUnseenRows) {
  TableOptions options = sparse_options("a", 1);
  options.score = {true, 0.1F, 1.0F, 0.5F, 0.9F, 3};
  for (const bool on_disk : {false, true}) {
    const Folder folder;
    options.on_disk = on_disk;
    SparseTable table(options, {0, 1}, folder.path);
    push(&table, {1, 2, 3}, {0, 0, 0}, {1, 10, 100}, {1, 2, 50});
    table.shrink();  // half of: 1, 2.8, 55
    EXPECT_EQ(table.size().rows, 2U);
    push(&table, {3}, {0}, {0}, {0});
    table.shrink();
    EXPECT_EQ(table.size().rows, 1U);
    for (int day = 0; day < 4; ++day) table.shrink();
    EXPECT_EQ(table.size().rows, 0U);
  }
}

TEST(ParameterServerTable, ThreadsPushToOneTable) {
  SparseTable table(sparse_options("a", 1), {0, 1}, "");
  std::vector<uint64_t> keys(100);
  std::iota(keys.begin(), keys.end(), 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) push(&table, keys, std::vector<float>(100, -1.0F));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pulled(table, keys), std::vector<float>(100, 200.0F));
}

TEST(ParameterServerTable, ATableOnDiskStaysWithinItsCache) {
  const Folder folder;
  TableOptions options = sparse_options("big", 16);
  options.on_disk = true;
  options.cache_bytes = 4 << 20;
  SparseTable table(options, {0, 1}, folder.path);
  constexpr uint64_t kBatch = 2000, kBatches = 100;  // 16 MB of rows
  std::vector<uint64_t> keys(kBatch);
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    std::iota(keys.begin(), keys.end(), batch * kBatch);
    push(&table, keys, std::vector<float>(kBatch * 16, static_cast<float>(batch)));
    EXPECT_LT(table.size().bytes, 12U << 20);
  }
  EXPECT_EQ(pulled(table, {5 * kBatch + 1})[0], -5.0F);
  EXPECT_EQ(table.size().rows, kBatch * kBatches);
}

// ---- The server ----------------------------------------------------------------------------------

ServerOptions server_options(const std::string& folder, uint32_t workers = 1) {
  ServerOptions options;
  options.folder = folder;
  options.workers = workers;
  return options;
}

struct Caller {
  Core& core;
  uint64_t client = 1;
  uint64_t number = 0;

  wire::Reply send(wire::Request request) {
    request.set_client(client);
    request.set_number(++number);
    wire::Reply reply;
    core.handle(request, &reply);
    return reply;
  }
  void create(const TableOptions& options) {
    wire::Request request;
    *request.mutable_create() = to_wire(options);
    send(request);
  }
  void push(const std::string& table, std::vector<uint64_t> keys, std::vector<float> gradients,
            bool later = false, uint32_t worker = 0) {
    wire::Request request;
    request.set_table(table);
    request.set_worker(worker);
    request.mutable_push_sparse()->mutable_keys()->Add(keys.begin(), keys.end());
    request.mutable_push_sparse()->mutable_gradients()->Add(gradients.begin(), gradients.end());
    request.mutable_push_sparse()->set_later(later);
    send(request);
  }
  std::vector<float> pull(const std::string& table, std::vector<uint64_t> keys) {
    wire::Request request;
    request.set_table(table);
    request.mutable_pull_sparse()->mutable_keys()->Add(keys.begin(), keys.end());
    wire::Reply reply;
    core.handle(request, &reply);
    return {reply.values().begin(), reply.values().end()};
  }
};

// What is on the disk now, as after a kill.
std::string copy_of(const std::string& folder, const Folder& to, const char* name) {
  const std::string copy = to.path + "/" + name;
  fs::copy(folder, copy, fs::copy_options::recursive);
  return copy;
}

TEST(ParameterServer, ComesBackFromLogAndCheckpoint) {
  const Folder folder, copies;
  const std::string live = folder.path + "/live";
  TableOptions disk = sparse_options("disk", 1);
  disk.on_disk = true;
  Core core(server_options(live));
  Caller caller{core};
  caller.create(sparse_options("memory", 1));
  caller.create(disk);
  for (int i = 0; i < 5; ++i) {
    for (const char* table : {"memory", "disk"}) caller.push(table, {1, 2}, {-1, -2});
    if (i == 2) core.checkpoint();
    Core again(server_options(copy_of(live, copies, std::to_string(i).c_str())));
    Caller reader{again};
    const auto n = static_cast<float>(i + 1);
    for (const char* table : {"memory", "disk"}) {
      EXPECT_EQ(reader.pull(table, {1, 2}), (std::vector<float>{n, 2 * n})) << table << i;
    }
  }
}

TEST(ParameterServer, AChangeThatComesAgainIsNotApplied) {
  const Folder folder, copies;
  Core core(server_options(folder.path + "/live"));
  Caller caller{core};
  caller.create(sparse_options("a", 1));
  caller.push("a", {1}, {-1});
  --caller.number;
  caller.push("a", {1}, {-1});
  EXPECT_EQ(caller.pull("a", {1}), std::vector<float>{1});
  Core again(server_options(copy_of(folder.path + "/live", copies, "copy")));
  Caller repeated{again, 1, caller.number - 1};
  repeated.push("a", {1}, {-1});
  EXPECT_EQ(repeated.pull("a", {1}), std::vector<float>{1});
}

TEST(ParameterServer, ATornLogLosesWhatWasNotAcknowledged) {
  const Folder folder;
  {
    Core core(server_options(folder.path));
    Caller caller{core};
    caller.create(sparse_options("a", 1));
    for (int i = 0; i < 3; ++i) caller.push("a", {1}, {-1});
  }
  const std::string log = folder.path + "/log-0";
  fs::resize_file(log, fs::file_size(log) - 3);
  {
    Core core(server_options(folder.path));
    Caller caller{core, 2};
    EXPECT_EQ(caller.pull("a", {1}), std::vector<float>{2});
    caller.push("a", {1}, {-5});
  }
  Core core(server_options(folder.path));
  EXPECT_EQ((Caller{core, 3}.pull("a", {1})), std::vector<float>{7});
}

TEST(ParameterServer, ADamagedLogIsAnError) {
  const Folder folder;
  {
    Core core(server_options(folder.path));
    Caller caller{core};
    caller.create(sparse_options("a", 1));
    for (int i = 0; i < 3; ++i) caller.push("a", {1}, {-1});
  }
  std::fstream log(folder.path + "/log-0", std::ios::in | std::ios::out | std::ios::binary);
  log.seekp(12);
  log.put('\x7f');
  log.close();
  EXPECT_THROW(Core(server_options(folder.path)), Error);
}

TEST(ParameterServer, AStepAppliesTheMeanOfAllWorkers) {
  const Folder folder;
  Core core(server_options(folder.path, 2));
  Caller first{core, 1}, second{core, 2};
  first.create(sparse_options("a", 1));
  first.push("a", {1, 2}, {-4, -4}, true, 0);
  second.push("a", {1}, {-2}, true, 1);
  EXPECT_EQ(first.pull("a", {1}), std::vector<float>{0});
  const auto arrive = [&](uint32_t worker, uint64_t round) {
    wire::Request request;
    request.set_worker(worker);
    request.mutable_arrive()->set_channel("step");
    request.mutable_arrive()->set_round(round);
    request.mutable_arrive()->set_apply(true);
    wire::Reply reply;
    core.handle(request, &reply);
    return reply;
  };
  EXPECT_EQ(arrive(0, 1).missing(0), 1U);
  EXPECT_TRUE(arrive(1, 1).missing().empty());
  EXPECT_TRUE(arrive(0, 1).missing().empty());
  EXPECT_EQ(first.pull("a", {1, 2}), (std::vector<float>{3, 2}));
  EXPECT_THROW(arrive(0, 7), Error);
}

TEST(ParameterServer, SavedTablesAreReadByAnotherNumberOfServers) {
  const Folder folder;
  std::vector<uint64_t> keys(300);
  std::iota(keys.begin(), keys.end(), 0);
  const std::string saved = folder.path + "/saved";
  for (uint32_t server = 0; server < 2; ++server) {
    ServerOptions options = server_options(folder.path + "/" + std::to_string(server));
    options.index = server;
    options.servers = 2;
    Core core(options);
    Caller caller{core};
    caller.create(sparse_options("a", 1));
    std::vector<uint64_t> own;
    for (const uint64_t key : keys) {
      if (server_of(key, 2) == server) own.push_back(key);
    }
    caller.push("a", own, std::vector<float>(own.size(), -1));
    wire::Request request;
    request.mutable_save()->set_path(saved);
    caller.send(request);
    caller.push("a", {own[0]}, {-1});
    request.mutable_save()->set_delta(true);
    caller.send(request);
  }
  ServerOptions options = server_options(folder.path + "/third");
  Core core(options);
  core.load("", saved);
  Caller caller{core};
  const auto values = caller.pull("a", keys);
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0), 302.0);
  fs::remove(saved + "/a.base.1-of-2");
  EXPECT_THROW(core.load("", saved), Error);
}

TEST(ParameterServer, RefusesWhatMakesNoSense) {
  const Folder folder;
  Core core(server_options(folder.path));
  Caller caller{core};
  caller.create(sparse_options("a", 2));
  EXPECT_THROW(caller.push("b", {1}, {1, 1}), Error);
  EXPECT_THROW(caller.push("a", {1}, {1}), Error);
  EXPECT_THROW(caller.push("a", {1}, {1, NAN}), Error);
  EXPECT_THROW(caller.push("a", {1}, {1, 1}, false, 7), Error);
  EXPECT_THROW(caller.create(sparse_options("../a")), Error);
  EXPECT_THROW(caller.create(sparse_options("c", 0)), Error);
  EXPECT_THROW(caller.create(sparse_options("a", 3)), Error);
  EXPECT_THROW(caller.send({}), Error);
  EXPECT_EQ(caller.pull("a", {1}), (std::vector<float>{0, 0}));
  EXPECT_THROW(Core(server_options(folder.path)), Error);  // in use
}

TEST(ParameterServer, DenseTablesAreCutIntoChunks) {
  TableOptions options = sparse_options("d", kChunk + 3);
  options.sparse = false;
  DenseTable table(options, {0, 1});
  const std::vector<uint64_t> chunks{0, 1};
  ASSERT_EQ(table.values_of(chunks), kChunk + 3);
  table.push(chunks, std::vector<float>(kChunk + 3, -2.0F).data(), 0.5F);
  std::vector<float> values(kChunk + 3);
  table.pull(chunks, values.data());
  EXPECT_EQ(values, std::vector<float>(kChunk + 3, 1.0F));
  const std::vector<uint64_t> wrong{2};
  EXPECT_THROW(table.values_of(wrong), Error);
}

}  // namespace
}  // namespace oar::parameter_server
