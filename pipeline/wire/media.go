package wire

import "strings"

// DecodedSize returns the decoded size of a base64 text, in bytes.
func DecodedSize(base64 string) int {
	base64 = strings.TrimRight(base64, "=")
	return len(base64) * 3 / 4
}

// DataURL returns the MIME type of a data URL and the size of its content in bytes; otherwise and 0 for any
// other URL.
func DataURL(url, otherwise string) (mediaType string, size int) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return otherwise, 0
	}
	head, data, _ := strings.Cut(rest, ",")
	mediaType, _, _ = strings.Cut(head, ";")
	if mediaType == "" {
		mediaType = otherwise
	}
	if strings.HasSuffix(head, ";base64") {
		return mediaType, DecodedSize(data)
	}
	return mediaType, len(data)
}
