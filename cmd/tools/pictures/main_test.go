package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestPictureGetsSmallerAndLosesNothing(t *testing.T) {
	t.Parallel()
	drawn := image.NewNRGBA(image.Rect(0, 0, 300, 200))
	for x := range 300 {
		for y := range 200 {
			drawn.Set(x, y, color.NRGBA{R: uint8(x / 20), G: uint8(y / 10), B: uint8((x + y) % 7), A: 255})
		}
	}
	var shot bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&shot, drawn); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "picture.png")
	if err := write(file, shot.Bytes()); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(file)
	if err != nil || len(kept) >= shot.Len() {
		t.Fatalf("%d bytes of %d, %v", len(kept), shot.Len(), err)
	}
	read, err := png.Decode(bytes.NewReader(kept))
	if err != nil {
		t.Fatal(err)
	}
	for x := range 300 {
		for y := range 200 {
			if read.At(x, y) != color.Color(color.RGBA{R: uint8(x / 20), G: uint8(y / 10), B: uint8((x + y) % 7), A: 255}) &&
				read.At(x, y) != drawn.At(x, y) {
				t.Fatalf("the pixel at %d, %d is %v", x, y, read.At(x, y))
			}
		}
	}
	if err := write(file, []byte("no picture")); err == nil {
		t.Error("what is not a picture was written")
	}
}
