// Package tokens estimates what a prompt costs: how many tokens it has, how far a
// model's own count differs from that, which context window the model has and
// what its tokens cost.
//
// Texts are counted exactly with the vocabulary o200k_base. What is not text is
// estimated: images, documents and sounds by their size, encrypted payloads by
// their length. Models with another vocabulary are met by one factor each, which
// Calibration learns from the usage that the provider reports.
package tokens
