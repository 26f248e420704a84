#include "oar/ocr/models.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/ocr/network.h"

namespace oar::ocr {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 3;  // folders in folders
constexpr const char* kUsualSet = "default";

std::vector<std::string> words_of(const fs::path& path) {
  std::vector<std::string> words(1);
  for (const char c : path.string()) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0)
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

bool has_word(const fs::path& path, std::initializer_list<std::string_view> wanted) {
  const std::vector<std::string> words = words_of(path);
  return std::any_of(wanted.begin(), wanted.end(), [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

std::vector<fs::path> files_in(const fs::path& folder) {
  user_check(fs::is_directory(folder), ErrorKind::NotFound,
             "the folder of models '{}' does not exist.", folder.string());
  std::vector<fs::path> found;
  std::error_code failed;
  constexpr auto kSkip = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, kSkip, failed);
       !failed && at != fs::recursive_directory_iterator(); at.increment(failed)) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    if (at->is_regular_file()) found.push_back(at->path().lexically_relative(folder));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string listed(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const fs::path& file : files) names.push_back(file.string());
  return join(names, ", ");
}

// The only one of the files with one of these words, if there is one. The file's own name counts first.
fs::path only(const std::vector<fs::path>& files, std::initializer_list<std::string_view> words,
              const std::string& folder, const std::string& language) {
  std::vector<fs::path> fitting;
  for (const fs::path& file : files)
    if (has_word(file.filename(), words)) fitting.push_back(file);
  if (fitting.size() > 1 && !language.empty()) {
    std::vector<fs::path> of_language;
    for (const fs::path& file : fitting)
      if (has_word(file, {language})) of_language.push_back(file);
    if (!of_language.empty()) fitting = of_language;
  }
  user_check(fitting.size() <= 1, ErrorKind::InvalidArgument,
             "'{}' has several networks of one kind: {}.\nhint: Choose one by a word of its name "
             "(--lang), or pass a folder with one of them.",
             folder, listed(fitting));
  return fitting.empty() ? fs::path() : fitting.front();
}

}  // namespace

ModelFiles find_models(const std::string& folder, const std::string& language) {
  std::vector<fs::path> networks, texts;
  for (const fs::path& file : files_in(folder)) {
    if (is_network_file(file.string())) networks.push_back(file);
    if (file.extension() == ".txt" && has_word(file.stem(), {"dict", "keys"}))
      texts.push_back(file);
  }
  const auto whole = [&](const fs::path& file) {
    return file.empty() ? std::string() : (fs::path(folder) / file).string();
  };
  ModelFiles files{.detection = whole(only(networks, {"detection", "det"}, folder, language)),
                   .recognition = whole(only(networks, {"rec", "recognition"}, folder, language)),
                   .direction = whole(only(networks, {"cls", "classification"}, folder, language)),
                   .dictionary = whole(only(texts, {"dict", "keys"}, folder, language))};
  for (const auto& [file, word] : {std::pair{files.detection, "det"}, {files.recognition, "rec"}})
    user_check(!file.empty(), ErrorKind::NotFound,
               "'{}' has no network whose name has the word '{}'.\nhint: Pass a folder with the "
               "networks of PP-OCR, for example det.onnx, rec.onnx and cls.onnx.",
               folder, word);
  return files;
}

std::string models_folder(const std::string& language) {
  const std::string cache = cache_folder();
  const fs::path root = cache.empty() ? fs::path(".cache") / "oar" : fs::path(cache);
  return (root / "ocr" / (language.empty() ? kUsualSet : language)).string();
}

}  // namespace oar::ocr
