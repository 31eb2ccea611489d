// From bytes to tensors, once: a step then only gathers its rows.
#include "trainer/data_set.h"

#include <ATen/ATen.h>

#include "trainer/digits.h"
#include "trainer/idx.h"

namespace dtool::trainer {
namespace {

DataSet to_tensors(LabelledImages& bytes, at::Device device) {
  const at::Tensor images =
      at::from_blob(bytes.images.data(), {bytes.count, bytes.pixels}, at::TensorOptions(at::kByte));
  const at::Tensor labels =
      at::from_blob(bytes.labels.data(), {bytes.count}, at::TensorOptions(at::kByte));
  return {images.to(device, at::kFloat).div_(255), labels.to(device, at::kLong)};
}

}  // namespace

DataSets load_data(const DataSettings& settings, at::Device device) {
  TrainAndTest bytes;
  if (settings.source == DataSource::mnist) {
    bytes = read_mnist_folder(settings.path);
  } else {
    bytes.train = draw_digits(settings.train_samples, settings.drawing_seed);
    bytes.test = draw_digits(settings.test_samples, ~settings.drawing_seed);
    bytes.classes = 10;
  }
  return {to_tensors(bytes.train, device), to_tensors(bytes.test, device), bytes.classes};
}

}  // namespace dtool::trainer
