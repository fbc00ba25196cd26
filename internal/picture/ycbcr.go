package picture

// Colours turns the colours of JPEGs into RGB by table. It gives those of color.YCbCrToRGB, in less time.
type Colours [1024]uint8

// NewColours returns the table: for a colour of -256 to 767, the nearest that a byte can hold.
func NewColours() *Colours {
	var c Colours
	for i := range c {
		c[i] = uint8(min(max(i-256, 0), 255))
	}
	return &c
}

// RGB returns the red, green and blue of a pixel.
func (c *Colours) RGB(luma, cb, cr uint8) (red, green, blue uint8) {
	r, g, b := tint(cb, cr)
	return c.with(luma, r), c.with(luma, g), c.with(luma, b)
}

// tint returns what the chroma of a pixel adds to its red, green and blue, for with.
func tint(cb, cr uint8) (red, green, blue int32) {
	b, r := int32(cb)-128, int32(cr)-128
	// The factors of color.YCbCrToRGB, and 256 more, so that none is negative.
	return 256<<16 + 91881*r, 256<<16 - 22554*b - 46802*r, 256<<16 + 116130*b
}

// with returns one colour of a pixel by its luma and its tint.
func (c *Colours) with(luma uint8, tint int32) uint8 {
	return c[uint32(int32(luma)*0x10101+tint)>>16&1023]
}
