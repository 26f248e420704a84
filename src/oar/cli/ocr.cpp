#include <filesystem>
#include <iostream>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/cli/commands.h"
#include "oar/cli/run_python.h"
#include "oar/formats/json_reader.h"
#include "oar/media/png.h"
#include "oar/ocr/draw.h"
#include "oar/ocr/pages.h"
#include "oar/ocr/reader.h"

namespace oar::cli {
namespace {

std::string folder_of(const OcrQuery& query) {
  if (!query.models.empty()) return query.models;
  const std::string folder = ocr::models_folder(query.language);
  const std::string wanted = query.language.empty() ? "" : " --lang " + query.language;
  user_check(std::filesystem::is_directory(folder), ErrorKind::NotFound,
             "ocr: no models are installed in {}.\nhint: `oar ocr --fetch{}` fetches them; or pass "
             "a folder of your own with --models.",
             folder, wanted);
  return folder;
}

std::string number(double value) { return format("{:.6g}", value); }

std::string json_of(const ocr::Line& line) {
  std::string corners;
  for (const ocr::Point& p : line.box)
    corners += format("{}[{}, {}]", corners.empty() ? "" : ", ", number(static_cast<double>(p.x)),
                      number(static_cast<double>(p.y)));
  return format("{{\"text\": {}, \"score\": {}, \"box\": [{}], \"turned\": {}}}",
                json_quoted(line.text), number(line.score), corners, line.turned);
}

// A line of JSON for each page.
void print_json(std::ostream& out, const std::string& path, size_t page,
                const std::vector<ocr::Line>& lines) {
  out << format("{{\"image\": {}, \"page\": {}, \"lines\": [", json_quoted(path), page);
  for (size_t i = 0; i < lines.size(); ++i) out << (i == 0 ? "" : ", ") << json_of(lines[i]);
  out << "]}\n";
}

// "out.png", or for the later ones "out-2.png".
std::string picture_name(const std::string& path, size_t index) {
  if (index == 0) return path;
  const std::filesystem::path file(path);
  return (file.parent_path() /
          format("{}-{}{}", file.stem().string(), index + 1, file.extension().string()))
      .string();
}

}  // namespace

int ocr(std::ostream& out, const OcrQuery& query) {
  if (query.fetch) {
    std::vector<std::string> command{"-m", "oar.vision.ocr", "fetch"};
    if (!query.language.empty()) command.push_back(query.language);
    return run_python("ocr: the models are fetched by the Python package", command);
  }
  user_check(!query.images.empty(), ErrorKind::InvalidArgument,
             "ocr: which images?\nhint: `oar ocr page.png`; `oar ocr --help` shows more.");
  const ocr::Reader reader = ocr::Reader::load(ocr::find_models(folder_of(query), query.language));
  int status = 0;
  size_t pictures = 0;
  for (const std::string& path : query.images) {
    try {
      const std::vector<Tensor> pages = ocr::read_pages(path);
      if (query.images.size() > 1 && !query.json) out << "== " << path << '\n';
      for (size_t page = 0; page < pages.size(); ++page) {
        const std::vector<ocr::Line> lines = reader.read(pages[page]);
        if (query.json)
          print_json(out, path, page + 1, lines);
        else
          for (const ocr::Line& line : lines) out << line.text << '\n';
        out.flush();
        if (!query.draw.empty())
          write_file_atomic(picture_name(query.draw, pictures++),
                            media::encode_png(ocr::drawn(pages[page], lines)));
      }
    } catch (const Error& error) {  // the other images are still read
      std::cerr << "oar: ocr: " << error.what() << '\n';
      status = 1;
    }
  }
  return status;
}

}  // namespace oar::cli
