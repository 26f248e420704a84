// The cache of kernels on disk: what was kept is found, and whatever is wrong with an entry, a folder or the disk, there is no entry.
#include "oar/compiler/fusion/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "oar/base/file.h"
#include "oar/base/format.h"

namespace oar::fusion {
namespace {

namespace fs = std::filesystem;

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / format("oar_kernels_{}", ::getpid()) / "kernels";
    fs::remove_all(folder_.parent_path());
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  KernelCache cache(int64_t most = 1 << 20) const { return {folder_.string(), most}; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> made;
    for (const auto& entry : fs::directory_iterator(folder_)) made.push_back(entry.path());
    return made;
  }

  fs::path folder_;
};

TEST_F(KernelCacheTest, WhatWasKeptIsFoundByLaterProcesses) {
  const std::string object("\0code\n", 6);
  KernelCache first = cache();
  EXPECT_EQ(first.find("key"), std::nullopt);
  first.keep("key", object);
  first.keep("other", "more");
  EXPECT_EQ(cache().find("key"), object);
  EXPECT_EQ(cache().find("other"), "more");
  EXPECT_EQ(cache().find("ke"), std::nullopt);
  EXPECT_EQ(first.size().entries, 2);
}

TEST_F(KernelCacheTest, OnlyTheUserCanReadAndWrite) {
  cache().keep("key", "code");
  struct stat info{};
  ASSERT_EQ(::stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(files()[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(KernelCacheTest, DamagedEntriesAreNoEntries) {
  cache().keep("key", "some code");
  const fs::path path = files()[0];
  const std::string whole = read_file(path.string());
  const auto found_with = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return cache().find("key");
  };
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(found_with(whole.substr(0, length)), std::nullopt) << length;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] ^= 1;
    EXPECT_EQ(found_with(changed), std::nullopt) << at;
  }
  EXPECT_EQ(found_with(whole + "x"), std::nullopt);
  EXPECT_EQ(found_with(whole), "some code");
}

// An entry of another kernel under this one's name.
TEST_F(KernelCacheTest, AnEntryOfAnotherKeyIsNone) {
  KernelCache kernels = cache();
  kernels.keep("key", "code");
  const fs::path key = files()[0];
  const std::string entry = read_file(key.string());
  fs::remove(key);
  kernels.keep("other", "other code");
  std::ofstream(files()[0], std::ios::binary) << entry;
  EXPECT_EQ(kernels.find("other"), std::nullopt);
}

TEST_F(KernelCacheTest, FoldersAndFilesThatOthersMayWriteAreRefused) {
  cache().keep("key", "code");
  fs::permissions(files()[0], fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  fs::permissions(folder_, fs::perms::group_write, fs::perm_options::add);
  KernelCache open = cache();
  EXPECT_NE(open.refused().find("others may write"), std::string::npos);
  open.keep("new", "code");
  EXPECT_EQ(open.find("new"), std::nullopt);
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(KernelCacheTest, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make one";
  fs::create_directories(folder_);
  ASSERT_EQ(::chown(folder_.c_str(), 12345, 12345), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_NE(cache().refused().find("another user"), std::string::npos);
}

TEST_F(KernelCacheTest, WhereNoFolderCanBeThereIsNoCache) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_) << "a file";
  KernelCache none = cache();
  EXPECT_FALSE(none.refused().empty());
  none.keep("key", "code");
  EXPECT_EQ(none.find("key"), std::nullopt);
  EXPECT_FALSE(KernelCache("", 1 << 20).refused().empty());
  EXPECT_FALSE(KernelCache("/proc/no/such/folder", 1 << 20).refused().empty());
  fs::remove(folder_);
  fs::create_symlink(fs::temp_directory_path(), folder_);
  EXPECT_FALSE(cache().refused().empty());
}

// In a process whose files cannot grow: as on a full disk.
TEST_F(KernelCacheTest, AFullDiskIsNoFailure) {
  cache().keep("small", "code");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{16, 16};
    ::setrlimit(RLIMIT_FSIZE, &none);
    KernelCache full = cache();
    full.keep("large", std::string(1000, 'x'));
    const bool fine = full.find("large") == std::nullopt && !full.refused().empty() &&
                      cache().find("small") == "code";
    ::_exit(fine ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files().size(), 1U);  // nothing half written is left
}

TEST_F(KernelCacheTest, TheOldestGoWhenThereAreTooMany) {
  KernelCache small = cache(20'000);
  const std::string object(900, 'x');
  for (int i = 0; i < 60; ++i) {
    small.keep(format("key {}", i), object);
    EXPECT_EQ(small.find(format("key {}", i)), object) << i;
    EXPECT_LE(small.size().bytes, 20'000);
  }
  EXPECT_GE(small.size().entries, 10);
  EXPECT_EQ(small.find("key 0"), std::nullopt);
  small.keep("giant", std::string(30'000, 'x'));
  EXPECT_EQ(small.find("giant"), std::nullopt);
  EXPECT_GE(small.size().entries, 10);
}

TEST_F(KernelCacheTest, SeveralProcessesAtOnce) {
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = ::fork();
    if (child == 0) {
      KernelCache own = cache(10'000);
      bool fine = true;
      for (int i = 0; i < 100; ++i) {
        const std::string key = format("key {}", i % 17),
                          object(300, static_cast<char>('a' + i % 17));
        const std::optional<std::string> found = own.find(key);
        fine &= !found || *found == object;
        own.keep(key, object);
      }
      ::_exit(fine && own.refused().empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (const fs::path& path : files())
    EXPECT_EQ(path.string().find(".tmp."), std::string::npos) << path;
}

}  // namespace
}  // namespace oar::fusion
