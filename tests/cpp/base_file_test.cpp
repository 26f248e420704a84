#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "oar/base/error.h"
#include "oar/base/file.h"

namespace oar {
namespace {

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/oar_file_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::size_t file_count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  std::string directory_;
};

TEST_F(File, RoundTrips) {
  const std::string content("a\0b\n", 4);
  const std::string big(300'000, 'x');
  write_file_atomic(path("a"), content);
  EXPECT_EQ(read_file(path("a")), content);
  write_file_atomic(path("a"), big);
  EXPECT_EQ(read_file(path("a")), big);
  write_file_atomic(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_EQ(file_count(), 1U);
  EXPECT_FALSE(read_file("/proc/self/status").empty());
}

TEST_F(File, AppearsOnlyWhenCommitted) {
  write_file_atomic(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write("ne", 2);
    EXPECT_EQ(read_file(path("a")), "old");
  }
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(file_count(), 1U);
  AtomicFile file(path("a"));
  file.write("ne", 2);
  file.write("w", 1);
  file.commit();
  EXPECT_EQ(read_file(path("a")), "new");
  EXPECT_THROW(file.commit(), Error);
  EXPECT_EQ(file_count(), 1U);
}

TEST_F(File, KeepsLinksAndPermissions) {
  write_file_atomic(path("target"), "old");
  ASSERT_EQ(chmod(path("target").c_str(), 0640), 0);
  std::filesystem::create_symlink("target", path("link"));
  write_file_atomic(path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")), "new");
  struct stat info{};
  ASSERT_EQ(stat(path("target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST_F(File, ErrorsNamePathAndReason) {
  try {
    read_file(path("none"));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::NotFound);
    EXPECT_EQ(error.text(), "Cannot open \"" + path("none") + "\": No such file or directory.");
  }
  try {
    read_file(directory_);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Runtime);
    EXPECT_EQ(error.text(), "Cannot read \"" + directory_ + "\": Is a directory.");
  }
  EXPECT_THROW(write_file_atomic(path("no/such/a"), "x"), Error);
  EXPECT_THROW(write_file_atomic(directory_, "x"), Error);
  EXPECT_EQ(file_count(), 0U);
}

}  // namespace
}  // namespace oar
