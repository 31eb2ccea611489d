// SPDX-License-Identifier: MIT
// The page: the pictures as PNGs, the map, and the script that plays them.
#include "trainer/objectnav/show_rollout.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <cassert>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/objectnav/camera.h"

namespace dtool::trainer {
namespace {

std::string big_endian(std::size_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string png_chunk(const std::string& name, const std::string& data) {
  const std::string counted = name + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(counted.data()), static_cast<uInt>(counted.size()));
  return big_endian(data.size()) + counted + big_endian(sum);
}

/// A PNG file of `rows` rows with `columns` pixels of red, green and blue
/// (https://www.w3.org/TR/png/).
std::string png_of(std::span<const std::uint8_t> pixels, int rows, int columns) {
  const auto width = 3 * static_cast<std::size_t>(columns);
  assert(pixels.size() == width * static_cast<std::size_t>(rows));
  std::string lines;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    lines += '\0';  // no filter
    lines.append(reinterpret_cast<const char*>(&pixels[row * width]), width);
  }
  uLongf size = compressBound(lines.size());
  std::string packed(size, '\0');
  [[maybe_unused]] const int result =
      compress(reinterpret_cast<Bytef*>(packed.data()), &size,
               reinterpret_cast<const Bytef*>(lines.data()), lines.size());
  assert(result == Z_OK);  // there is memory and space enough
  packed.resize(size);
  const std::string eight_bits_of_rgb = {8, 2, 0, 0, 0};
  const std::string header = big_endian(static_cast<std::size_t>(columns)) +
                             big_endian(static_cast<std::size_t>(rows)) + eight_bits_of_rgb;
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // a 0 is written at the end
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

/// The camera's picture, and the depths in grey to its right.
std::string frame(const House& house, const Episode& now) {
  std::vector<std::uint8_t> picture(kPictureBytes);
  take_picture(house, now.cell, view_heading(now), kNoClass, picture.data());
  constexpr std::size_t kSide = kPictureSide, kPlane = kSide * kSide;
  std::vector<std::uint8_t> pixels(2 * 3 * kPlane);
  for (std::size_t i = 0; i < kPlane; ++i) {
    std::uint8_t* const left = &pixels[3 * (i / kSide * 2 * kSide + i % kSide)];
    for (std::size_t plane = 0; plane < 3; ++plane) {
      left[plane] = picture[plane * kPlane + i];
      left[3 * kSide + plane] = picture[3 * kPlane + i];
    }
  }
  return png_of(pixels, kPictureSide, 2 * kPictureSide);
}

/// One entry of the script's list: picture, words, and where the agent is, in degrees and pixels.
std::string entry(const Trace& trace, std::size_t step) {
  const Episode& now = trace.episodes[step];
  const auto [x, y] = middle_of(now.cell);
  return fmt::format("[\"{}\",\"{}\",{},{},{},{}],\n", base64(frame(trace.house, now)),
                     describe_step(trace, step), x, y, 90 * now.heading, 90 * view_heading(now));
}

/// The agent in the step that is shown: where it looks, and where its body points.
constexpr std::string_view kAgent =
    "<g id=\"agent\"><path id=\"look\" d=\"M0 0L-60 -60A85 85 0 0 1 60 -60Z\" fill=\"#2b6cff\" "
    "fill-opacity=\"0.25\"/><path id=\"body\" d=\"M0 -14L10 11L0 6L-10 11Z\" fill=\"#2b6cff\" "
    "stroke=\"#fff\" stroke-width=\"1.5\"/></g>\n";

constexpr std::string_view kStyle = R"(<style>
body { font: 15px Helvetica, Arial, 'DejaVu Sans', sans-serif; color: #222; margin: 16px;
  display: flex; flex-wrap: wrap; align-items: flex-start; gap: 16px }
div { flex: 0 1 512px }
#eye { width: 100%; image-rendering: pixelated; display: block; background: #000 }
#step { width: 100% }
svg { flex: 1 1 500px; max-width: 920px; height: auto }
</style>
)";

constexpr std::string_view kPlayer = R"(
const at = id => document.getElementById(id);
let timer = 0;
function show(step) {
  const [picture, words, x, y, body, look] = steps[step];
  at('step').value = step;
  at('eye').src = 'data:image/png;base64,' + picture;
  at('words').textContent = words;
  at('agent').setAttribute('transform', `translate(${x} ${y})`);
  at('body').setAttribute('transform', `rotate(${body})`);
  at('look').setAttribute('transform', `rotate(${look})`);
}
function play(on) {
  clearInterval(timer);
  timer = on ? setInterval(next, 200) : 0;
  at('play').textContent = on ? 'Pause' : 'Play';
}
function next() {
  const step = Number(at('step').value);
  if (step + 1 < steps.length) show(step + 1); else play(false);
}
at('step').max = steps.length - 1;
at('step').oninput = () => { play(false); show(Number(at('step').value)); };
at('play').onclick = () => {
  if (!timer && Number(at('step').value) + 1 == steps.length) show(0);
  play(!timer);
};
show(0);
play(!matchMedia('(prefers-reduced-motion: reduce)').matches);
)";

}  // namespace

std::string html_picture(const Trace& trace) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<title>Find the {}</title>\n{}</head><body>\n<div>\n"
      "<img id=\"eye\" alt=\"What the camera sees: colours, then depths\">\n"
      "<p id=\"words\"></p>\n<p><button id=\"play\">Play</button></p>\n"
      "<input id=\"step\" type=\"range\" min=\"0\" value=\"0\" aria-label=\"Step\">\n</div>\n",
      kObjectNames[static_cast<std::size_t>(trace.last().goal)], kStyle);
  text += svg_picture(trace, std::string(kAgent)) + "<script>\nconst steps = [\n";
  for (std::size_t step = 0; step <= trace.moves.size(); ++step) text += entry(trace, step);
  return text + "];" + std::string(kPlayer) + "</script>\n</body></html>\n";
}

}  // namespace dtool::trainer
