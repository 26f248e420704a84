#include "oar/ocr/pages.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/scope_guard.h"
#include "oar/ocr/picture.h"

extern char** environ;

namespace oar::ocr {
namespace {

constexpr const char* kDotsPerInch = "150";
constexpr size_t kMostBytes = size_t{4} << 30;  // of all pages

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > kMostBytes) return text;
  }
}

// Its pages as PPM images.
std::string drawn_by_poppler(const std::string& path) {
  int pipe[2];
  user_check(::pipe2(pipe, O_CLOEXEC) == 0, ErrorKind::Runtime, "no pipe: {}",
             std::strerror(errno));
  const ScopeGuard close_reading([&] { ::close(pipe[0]); });
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const ScopeGuard destroy([&] { posix_spawn_file_actions_destroy(&actions); });
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // A path that begins with a dash would be taken for an option.
  std::string program = "pdftoppm", resolution = "-r", dots = kDotsPerInch,
              file = path.starts_with('-') ? "./" + path : path;
  char* arguments[] = {program.data(), resolution.data(), dots.data(), file.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "pdftoppm", &actions, nullptr, arguments, environ);
  ::close(pipe[1]);
  user_check(failed == 0, ErrorKind::NotFound,
             "a PDF file needs Poppler's command `pdftoppm`, which cannot be run: {}.\nhint: "
             "Install it, on Debian `apt-get install poppler-utils`.",
             std::strerror(failed));
  std::string stream = read_all(pipe[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  user_check(WIFEXITED(status) && WEXITSTATUS(status) != 127, ErrorKind::NotFound,
             "a PDF file needs Poppler's command `pdftoppm`.\nhint: Install it, on Debian `apt-get "
             "install poppler-utils`.");
  user_check(WEXITSTATUS(status) == 0 && !stream.empty(), ErrorKind::InvalidArgument,
             "Poppler cannot read the PDF file: it is damaged or protected.");
  return stream;
}

// The next number of a PPM header.
int64_t header_number(std::string_view& rest) {
  constexpr std::string_view kSpace = " \t\r\n";
  while (!rest.empty() && (kSpace.find(rest[0]) != std::string_view::npos || rest[0] == '#'))
    rest.remove_prefix(rest[0] == '#' ? std::min(rest.find('\n'), rest.size()) : 1);
  int64_t value = 0;
  size_t digits = 0;
  for (; digits < rest.size() && digits < 9 && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
    value = 10 * value + (rest[digits] - '0');
  user_check(digits > 0, ErrorKind::InvalidArgument, "the header of a PPM image has no number.");
  rest.remove_prefix(digits);
  return value;
}

}  // namespace

std::vector<Tensor> parse_ppm(std::string_view stream) {
  std::vector<Tensor> pages;
  while (!stream.empty()) {
    user_check(stream.starts_with("P6"), ErrorKind::InvalidArgument,
               "a PPM image does not begin with P6.");
    stream.remove_prefix(2);
    const int64_t width = header_number(stream), height = header_number(stream);
    const int64_t most = header_number(stream);
    user_check(width > 0 && height > 0 && height <= media::kMostPixels / width && most == 255,
               ErrorKind::InvalidArgument, "a PPM image claims {} x {} pixels up to {}.", height,
               width, most);
    const auto bytes = static_cast<size_t>(3 * width * height);
    user_check(stream.size() > bytes, ErrorKind::InvalidArgument, "a PPM image ends too early.");
    Tensor page = media::empty_image(height, width, 3);
    std::memcpy(page.data<uint8_t>(), stream.data() + 1, bytes);  // after one space
    pages.push_back(std::move(page));
    stream.remove_prefix(1 + bytes);
  }
  return pages;
}

std::vector<Tensor> read_pages(const std::string& path) {
  const std::string file = read_file(path);
  try {
    if (file.starts_with("%PDF-")) return parse_ppm(drawn_by_poppler(path));
    return {read_picture(file)};
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}{}{}", path, error.text(),
         error.hint().empty() ? "" : "\nhint: ", error.hint());
  }
}

}  // namespace oar::ocr
