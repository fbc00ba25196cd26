package picture

import (
	"image"
	"image/color"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestColours holds the table against color.YCbCrToRGB, for every colour.
func TestColours(t *testing.T) {
	c := NewColours()
	for i := range 1 << 24 {
		luma, cb, cr := uint8(i>>16), uint8(i>>8), uint8(i)
		red, green, blue := color.YCbCrToRGB(luma, cb, cr)
		if r, g, b := c.RGB(luma, cb, cr); r != red || g != green || b != blue {
			t.Fatalf("RGB(%d, %d, %d) = %d, %d, %d, want %d, %d, %d", luma, cb, cr, r, g, b, red, green, blue)
		}
	}
}

// TestShrinkJPEG shrinks a JPEG as its pixels that image/draw makes, however its colours are sampled.
func TestShrinkJPEG(t *testing.T) {
	for ratio := image.YCbCrSubsampleRatio444; ratio <= image.YCbCrSubsampleRatio410; ratio++ {
		for _, size := range []image.Point{{1, 1}, {7, 90}, {99, 67}, {640, 480}} {
			img := image.NewYCbCr(image.Rectangle{Max: size}, ratio)
			for i, plane := range [][]byte{img.Y, img.Cb, img.Cr} {
				for j := range plane {
					plane[j] = uint8(j * (j + 7*i) / 91) // every colour, and those that RGB does not have
				}
			}
			if diff := cmp.Diff(Shrink(OverWhite(img), img.Rect), Shrink(img, img.Rect)); diff != "" {
				t.Errorf("%v, %v:\n%s", ratio, size, diff)
			}
		}
	}
	// One sum does not hold so much white.
	for _, size := range []image.Point{{64*maxWhole + 640, 1}, {64 * 80, 64 * 120}} {
		if got := Shrink(image.White, image.Rectangle{Max: size}).RGBAAt(5, 5); got != (color.RGBA{255, 255, 255, 255}) {
			t.Errorf("a white picture of %v: %v", size, got)
		}
	}
}

// TestShrink gives each cell the mean of its pixels, counted in parts one by one.
func TestShrink(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {3, 64}, {63, 65}, {130, 127}, {200, 320}, {70, 9000}} {
		img := image.NewRGBA(image.Rectangle{Max: size})
		for i := range img.Pix {
			img.Pix[i] = uint8(i*i/7) | uint8(i/img.Stride*Cells/size.Y) // some cells are white
			if i%4 == 3 {
				img.Pix[i] = 255
			}
		}
		got := Shrink(img, img.Rect)
		for i := range got.Pix {
			x, y, channel, sum := i/4%Cells, i/4/Cells, i%4, 0
			for v := y * size.Y; v < (y+1)*size.Y; v += Cells - v%Cells {
				for u := x * size.X; u < (x+1)*size.X; u += Cells - u%Cells {
					parts := min(Cells-u%Cells, (x+1)*size.X-u) * min(Cells-v%Cells, (y+1)*size.Y-v)
					sum += parts * int(img.Pix[img.PixOffset(u/Cells, v/Cells)+channel])
				}
			}
			if want := (sum + size.X*size.Y/2) / (size.X * size.Y); int(got.Pix[i]) != want {
				t.Fatalf("%v: cell %d, %d, colour %d is %d, want %d", size, x, y, channel, got.Pix[i], want)
			}
		}
	}
}

// TestShrinkGrey gives a grey picture the cells that its colours have, wherever its corner is.
func TestShrinkGrey(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {3, 64}, {64, 3}, {65, 63}, {130, 127}, {640, 481}} {
		grey := image.NewGray(image.Rectangle{Max: size})
		for i := range grey.Pix {
			grey.Pix[i] = uint8(i * i / 7)
		}
		part := grey.SubImage(image.Rect(size.X/3, size.Y/4, size.X, size.Y)).(*image.Gray)
		for _, img := range []*image.Gray{grey, part} {
			if diff := cmp.Diff(Shrink(OverWhite(img), OverWhite(img).Rect), Shrink(img, img.Rect)); diff != "" {
				t.Errorf("%v:\n%s", img.Rect, diff)
			}
		}
	}
}
