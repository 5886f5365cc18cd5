// Package tokens estimates the cost of a prompt: its number of tokens, the difference to the model's own
// count, the model's context window and its prices.
//
// Texts are counted exactly with the vocabulary o200k_base. Other content is estimated: images, documents and
// sounds by their size, encrypted payloads by their length. For models with other vocabularies, Calibration
// learns one factor each from the usage that the provider reports.
package tokens
