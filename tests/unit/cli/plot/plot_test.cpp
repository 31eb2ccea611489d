// SPDX-License-Identifier: MIT
// Panels, and how they are drawn with characters and for gnuplot.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/plot/panel.h"

namespace dtool::cli {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

Metrics loss(std::vector<double> values) {
  Curve curve{"loss", "step", {}, std::move(values)};
  for (std::size_t i = 0; i < curve.values.size(); ++i)
    curve.steps.push_back(static_cast<double>(i));
  return {{curve}, 0, 0};
}

std::string plain(std::size_t, std::string_view text) {
  return std::string(text);
}

std::size_t characters(const std::string& line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char each) { return (each & '\xC0') != '\x80'; }));
}

TEST(Panel, is_log_where_values_span_decades_and_nothing_else_is_said) {
  EXPECT_EQ(make_panel("loss", {loss({1, 0.01})}, {})->scale, Scale::log);
  EXPECT_EQ(make_panel("loss", {loss({1, 0.1})}, {})->scale, Scale::linear);
  EXPECT_EQ(make_panel("loss", {loss({1, 0})}, {})->scale, Scale::linear);
  EXPECT_EQ(make_panel("loss", {loss({1, 0.01})}, Scale::linear)->scale, Scale::linear);
}

TEST(Panel, is_not_there_where_no_run_has_a_number) {
  EXPECT_FALSE(make_panel("reward", {loss({1, 2})}, {}));
  EXPECT_FALSE(make_panel("loss", {loss({kGap, kGap})}, {}));
  EXPECT_FALSE(make_panel("loss", {loss({0, -1})}, Scale::log));
}

TEST(Panel, holds_the_curves_of_all_runs) {
  const auto panel = make_panel("loss", {loss({4, 2}), Metrics{}, loss({3, kGap, 1})}, {});
  ASSERT_EQ(panel->curves.size(), 2U);
  EXPECT_EQ(panel->curves[1].run, 2U);
  EXPECT_EQ(panel->high_x, 2);
  EXPECT_EQ(panel->low, 1);
  EXPECT_EQ(panel->high, 4);
}

TEST(Panel, several_share_their_steps_from_0_where_the_first_is_near) {
  Curve late{"late", "epoch", {40, 80}, {1, 2}};
  Curve early{"early", "step", {2, 50}, {1, 2}};
  std::vector<Panel> panels = {*make_panel("late", {{{late, early}, 0, 0}}, {}),
                               *make_panel("early", {{{late, early}, 0, 0}}, {})};
  share_x(panels);
  for (const Panel& panel : panels) {
    EXPECT_EQ(panel.low_x, 0);
    EXPECT_EQ(panel.high_x, 80);
  }
  std::vector<Panel> far = {*make_panel("late", {{{late}, 0, 0}}, {})};
  share_x(far);
  EXPECT_EQ(far[0].low_x, 40);
}

TEST(Panel, shows_seconds_of_the_runs_that_have_them) {
  Metrics timed = loss({4, 2});
  timed.curves[0].seconds = {5, 9};
  const auto panel = make_panel("loss", {loss({4, 2}), timed}, {}, XAxis::seconds);
  ASSERT_EQ(panel->curves.size(), 1U);
  EXPECT_EQ(panel->curves[0].run, 1U);
  EXPECT_EQ(panel->low_x, 5);
  EXPECT_EQ(panel->high_x, 9);
  const auto lines = draw_chart(*panel, 24, 8, plain);
  EXPECT_TRUE(lines.back().starts_with("   s ")) << lines.back();
  EXPECT_NE(gnuplot_script({.names = {"a"}, .panels = {*panel}}).find("xlabel 'seconds'"),
            std::string::npos);
}

TEST(Panel, shares_stand_between_0_and_1) {
  for (const char* metric : {"train_success", "validation_success", "validation_spl"}) {
    Metrics metrics = loss({0.004, 0.8});
    metrics.curves[0].metric = metric;
    const auto panel = make_panel(metric, {metrics}, {});
    EXPECT_EQ(panel->scale, Scale::linear) << metric;
    EXPECT_EQ(panel->low, 0);
    EXPECT_EQ(panel->high, 1);
  }
}

TEST(Panel, thinned_curves_keep_their_peaks_and_gaps) {
  PanelCurve curve;
  for (int i = 0; i < 100000; ++i) {
    curve.x.push_back(i);
    curve.values.push_back(i == 54321 ? 99 : i == 12345 ? -99 : i == 7777 ? kGap : i % 10);
  }
  const PanelCurve thin = thinned(curve, 500);
  EXPECT_LE(thin.x.size(), 4U * 500 + 1);
  EXPECT_EQ(std::ranges::count(thin.values, 99), 1);
  EXPECT_EQ(std::ranges::count(thin.values, -99), 1);
  EXPECT_EQ(std::ranges::count_if(thin.values, [](double value) { return std::isnan(value); }), 1);
  EXPECT_EQ(thin.x.front(), 0);
  EXPECT_EQ(thin.x.back(), 99999);
  EXPECT_TRUE(std::ranges::is_sorted(thin.x));
  EXPECT_EQ(thinned(curve, 50000).x.size(), curve.x.size());
}

TEST(Chart, is_as_large_as_it_was_told) {
  const auto panel = make_panel("loss", {loss({4, 3, 2, 1.5, 1.2, 1})}, {});
  for (const std::size_t columns : {24, 39, 80, 200}) {
    for (const std::size_t rows : {6, 11, 60}) {
      const auto lines = draw_chart(*panel, columns, rows, plain);
      ASSERT_EQ(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_EQ(characters(line), columns) << line;
    }
  }
}

TEST(Chart, cuts_a_title_between_its_characters) {
  auto panel = make_panel("loss", {loss({1, 2})}, {});
  panel->title = std::string(40, 'x');
  const std::string plain_title = draw_chart(*panel, 24, 8, plain).front();
  panel->title.clear();
  for (int i = 0; i < 40; ++i) panel->title += "\u00e9";
  const std::string title = draw_chart(*panel, 24, 8, plain).front();
  EXPECT_EQ(characters(title), characters(plain_title));
  EXPECT_EQ(std::ranges::count(title, '\xc3'), std::ranges::count(plain_title, 'x'));
  EXPECT_EQ(std::ranges::count(title, '\xa9'), std::ranges::count(plain_title, 'x'));
}

TEST(Chart, shows_a_falling_curve_from_left_to_right) {
  const auto lines = draw_chart(*make_panel("loss", {loss({3, 2, 1, 0})}, {}), 24, 8, plain);
  EXPECT_EQ(lines, (std::vector<std::string>{"     loss         last 0",  //
                                             "    │⠑⠢⢄⡀               ",  //
                                             "   2┤   ⠈⠑⠢⢄⡀           ",  //
                                             "    │       ⠈⠑⠢⢄⡀       ",  //
                                             "    │           ⠈⠑⠤⣀    ",  //
                                             "   0┤               ⠉⠒⠤⣀",  //
                                             "    └┬───────────┬──────",  //
                                             "step 0           2      "}));
}

TEST(Chart, breaks_the_line_at_a_gap_and_shows_a_lone_point) {
  const auto lines =
      draw_chart(*make_panel("loss", {loss({1, 1, kGap, 1, kGap, 2, 2})}, {}), 40, 9, plain);
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  EXPECT_NE(all.find("•"), all.npos) << all;
  const auto bottom = lines[lines.size() - 3];
  EXPECT_NE(bottom.find("⣀⡀   "), bottom.npos) << all;
}

TEST(Chart, numbers_the_curves_of_several_runs) {
  const auto lines =
      draw_chart(*make_panel("loss", {loss({3, 2, 1, 1}), loss({4, 3, 2, 2})}, {}), 60, 20, plain);
  std::string inner;
  for (std::size_t i = 1; i + 2 < lines.size(); ++i)
    inner += lines[i].substr(lines[i].find("\xE2"));  // without the axis' numbers
  EXPECT_NE(inner.find('1'), inner.npos);
  EXPECT_NE(inner.find('2'), inner.npos);
}

TEST(Gnuplot, names_of_any_kind_stay_names) {
  PictureRequest request;
  request.names = {"it's\n`rm -rf`"};
  request.panels = {*make_panel("loss", {loss({1, kGap, 2})}, {})};
  const std::string script = gnuplot_script(request);
  EXPECT_NE(script.find("'it''s?`rm -rf`'"), script.npos) << script;
  EXPECT_NE(script.find("0 1\n\n2 2\nEND\n"), script.npos) << script;
}

}  // namespace
}  // namespace dtool::cli
