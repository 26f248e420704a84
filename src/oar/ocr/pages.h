// The pages of a file: one of a JPEG or PNG file, those of a PDF file as Poppler draws them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/media/image.h"

namespace OAR_API oar {
namespace ocr {

// Errors name the file. A PDF file needs the command `pdftoppm`.
std::vector<Tensor> read_pages(const std::string& path);

// Images in the format PPM (P6, 8 bits), one after the other.
std::vector<Tensor> parse_ppm(std::string_view stream);

}  // namespace ocr
}  // namespace oar
