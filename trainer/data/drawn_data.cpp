// SPDX-License-Identifier: MIT
// Each digit consists of a few polylines in a box from (-1,-1) to (1,1), y downwards. A pixel's
// grey value depends on its distance to the nearest stroke.
#include "trainer/data/drawn_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "trainer/data/sampler.h"

namespace dtool::trainer {
namespace {

constexpr int kSide = 28;

struct Point {
  double x;
  double y;
};

using Stroke = std::vector<Point>;

/// An arc from angle `from` to `to`, in eighths of a full turn, clockwise from the right.
Stroke arc(Point centre, double radius_x, double radius_y, double from, double to) {
  constexpr int kPieces = 10;
  Stroke stroke;
  for (int i = 0; i <= kPieces; ++i) {
    const double angle = (from + (to - from) * i / kPieces) * M_PI / 4;
    stroke.push_back(
        {centre.x + radius_x * std::cos(angle), centre.y + radius_y * std::sin(angle)});
  }
  return stroke;
}

const std::array<std::vector<Stroke>, 10>& shapes() {
  static const std::array<std::vector<Stroke>, 10> kShapes = {{
      {arc({0, 0}, 0.6, 1, 0, 8)},
      {{{-0.35, -0.6}, {0.1, -1}, {0.1, 1}}},
      {arc({0, -0.45}, 0.6, 0.55, 4, 9), {{0.42, -0.06}, {-0.6, 1}, {0.65, 1}}},
      {arc({0, -0.5}, 0.55, 0.5, 4.5, 10), arc({0, 0.5}, 0.6, 0.5, 6, 11.5)},
      {{{0.3, 1}, {0.3, -1}, {-0.65, 0.35}, {0.65, 0.35}}},
      {{{0.55, -1}, {-0.45, -1}, {-0.5, -0.1}}, arc({0, 0.35}, 0.6, 0.62, 5, 11.3)},
      {{{0.35, -1}, {-0.3, -0.35}, {-0.57, 0.3}}, arc({0, 0.45}, 0.58, 0.55, 0, 8)},
      {{{-0.6, -1}, {0.6, -1}, {-0.15, 1}}},
      {arc({0, -0.5}, 0.48, 0.48, 0, 8), arc({0, 0.5}, 0.6, 0.52, 0, 8)},
      {arc({0, -0.4}, 0.55, 0.58, 0, 8), {{0.55, -0.4}, {0.5, 0.3}, {0.2, 1}}},
  }};
  return kShapes;
}

/// From the box of the shapes to pixels: scaled, slanted, turned, shifted.
struct Placement {
  double xx, xy, yx, yy;
  Point centre;

  Point operator()(Point p) const {
    return {centre.x + xx * p.x + xy * p.y, centre.y + yx * p.x + yy * p.y};
  }
};

Placement random_placement(Random& random) {
  const double width = random.between(5.5, 8.5);
  const double height = random.between(8.0, 10.0);
  const double slant = random.between(-0.25, 0.25);
  const double turn = random.between(-0.2, 0.2);  // radians: 11 degrees either way
  const double cosine = std::cos(turn);
  const double sine = std::sin(turn);
  // turn * slant * scale
  return {.xx = cosine * width,
          .xy = (cosine * slant - sine) * height,
          .yx = sine * width,
          .yy = (sine * slant + cosine) * height,
          .centre = {13.5 + random.between(-2, 2), 13.5 + random.between(-2, 2)}};
}

double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length2 = std::max(dx * dx + dy * dy, 1e-9);
  const double along = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0);
  return std::hypot(p.x - a.x - along * dx, p.y - a.y - along * dy);
}

using Canvas = std::array<double, kSide * kSide>;

/// Lightens every pixel by its nearness to the line from `a` to `b`.
void draw_line(Canvas& canvas, Point a, Point b, double half_width) {
  const double reach = half_width + 1;
  const auto first = [&](double low) { return std::max(0, static_cast<int>(low - reach)); };
  const auto last = [&](double high) {
    return std::min(kSide - 1, static_cast<int>(high + reach));
  };
  for (int y = first(std::min(a.y, b.y)); y <= last(std::max(a.y, b.y)); ++y) {
    for (int x = first(std::min(a.x, b.x)); x <= last(std::max(a.x, b.x)); ++x) {
      const double away = distance({double(x), double(y)}, a, b);
      double& grey = canvas[static_cast<std::size_t>(y * kSide + x)];
      grey = std::max(grey, std::clamp(reach - away, 0.0, 1.0));
    }
  }
}

void draw(int digit, Random& random, std::uint8_t* pixels) {
  const Placement place = random_placement(random);
  const double half_width = random.between(0.3, 1.5);
  const double ink = random.between(0.6, 1.0);
  const double noise = random.between(0.0, 0.3);
  Canvas canvas{};
  for (const Stroke& stroke : shapes()[static_cast<std::size_t>(digit)]) {
    // A hand never meets the same point twice: each end of a line wanders a little.
    Point previous{};
    for (std::size_t i = 0; i < stroke.size(); ++i) {
      Point next = place(stroke[i]);
      next.x += random.between(-0.5, 0.5);
      next.y += random.between(-0.5, 0.5);
      if (i > 0) draw_line(canvas, previous, next, half_width);
      previous = next;
    }
  }
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    const double grey = std::clamp(ink * canvas[i] + noise * random.between(-1, 1), 0.0, 1.0);
    pixels[i] = static_cast<std::uint8_t>(std::lround(255 * grey));
  }
}

}  // namespace

LabelledImages draw_digits(std::int64_t count, std::uint64_t seed,
                           std::pmr::memory_resource* memory) {
  LabelledImages drawn{count, kSide, kSide, kSide * kSide, std::pmr::vector<std::uint8_t>(memory),
                       {}};
  drawn.images.resize(static_cast<std::size_t>(count * drawn.pixels));
  drawn.labels.resize(static_cast<std::size_t>(count));
  const std::uint64_t base = Random(seed).next();
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(Random(base ^ static_cast<std::uint64_t>(i)).next());
    const auto digit = static_cast<int>(random.below(10));
    drawn.labels[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(digit);
    draw(digit, random, &drawn.images[static_cast<std::size_t>(i * drawn.pixels)]);
  }
  return drawn;
}

/// Each set comes from one stream of random numbers, row by row.
LabelledValues draw_values(std::int64_t count, std::int64_t features, RandomTargets targets,
                           std::uint64_t seed, std::uint64_t rule_seed,
                           std::pmr::memory_resource* memory) {
  Random rule(rule_seed + 0x72756c65);  // another stream than the samples'
  std::vector<double> weights(static_cast<std::size_t>(features));
  for (double& each : weights) each = rule.between(-1, 1);
  const double constant = rule.between(-1, 1);

  Random random(seed);
  LabelledValues values{std::pmr::vector<float>(memory), std::pmr::vector<float>(memory)};
  values.inputs.reserve(static_cast<std::size_t>(count * features));
  values.targets.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = constant;
    for (const double weight : weights) {
      const double input = random.between(0, 1);
      values.inputs.push_back(static_cast<float>(input));
      sum += weight * input;
    }
    const double target =
        targets == RandomTargets::linear ? sum + random.between(-0.1, 0.1) : random.between(0, 1);
    values.targets.push_back(static_cast<float>(target));
  }
  return values;
}

}  // namespace dtool::trainer
