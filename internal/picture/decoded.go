package picture

import "bytes"

// MaxDecodedBytes returns the bound on Info.DecodedBytes: four bytes for every pixel that is allowed, which is what
// most pictures of the largest size need, and at least 1 MiB.
func (l Limits) MaxDecodedBytes() int64 {
	// Below that the rounding up to whole blocks, not the picture, would be judged.
	return max(4*l.MaxPixels, 1<<20)
}

// decodedBytes estimates, from the header alone, the bytes that Decode allocates for an image of w by h pixels,
// working memory included. What the header leaves open is taken at its worst. The figures are those of the decoders of
// Go 1.26 and x/image 0.47.
func decodedBytes(format string, body []byte, w, h int64) int64 {
	switch format {
	case "jpeg":
		return decodedJPEG(body, w, h)
	case "png":
		return w * h * perPixelPNG(body)
	case "gif":
		return w * h * 6 // the frame, the same unlaced, and NRGBA when it is less than the canvas
	}
	return (w + 15) / 16 * 16 * ((h + 15) / 16 * 16) * perPixelWebP(body)
}

// decodedJPEG counts the samples of the components, in whole blocks.
func decodedJPEG(body []byte, w, h int64) int64 {
	const worst = 3 + 12 + 4 // progressive, RGB, nothing subsampled
	frame, progressive := jpegFrame(body)
	const header, each = 6, 3
	if len(frame) < header+each || len(frame) < header+each*int(frame[5]) {
		return w * h * worst
	}
	n := int(frame[5])
	var maxH, maxV, samples int64 = 1, 1, 0 // samples of a block of 8 maxH by 8 maxV pixels
	for c := range n {
		hv := int64(frame[header+each*c+1])
		if n == 1 {
			hv = 0x11 // the factors of a single component mean nothing
		}
		maxH, maxV = max(maxH, hv>>4), max(maxV, hv&15)
		samples += 64 * (hv >> 4) * (hv & 15)
	}
	blocks := (w + 8*maxH - 1) / (8 * maxH) * ((h + 8*maxV - 1) / (8 * maxV))
	bytes := blocks * samples
	if progressive {
		bytes *= 1 + 4 // for each sample a coefficient of four bytes is kept until the last scan
	}
	if n == 4 || n == 3 && mayBeRGB(frame, body) {
		bytes += 4 * w * h // RGB and CMYK end in a second picture
	}
	return bytes
}

// mayBeRGB reports whether a JPEG of three components can hold RGB instead of YCbCr: its components are called R, G and
// B, or an Adobe segment says so.
func mayBeRGB(frame, body []byte) bool {
	const transformAt = 11
	if frame[6] == 'R' && frame[9] == 'G' && frame[12] == 'B' {
		return true
	}
	for marker, content := range jpegSegments(body) { // of the whole file: it may come last
		if marker == mAPP14 && len(content) > transformAt && content[transformAt] == 0 &&
			bytes.HasPrefix(content, []byte("Adobe")) {
			return true
		}
	}
	return false
}

// perPixelPNG reads the depth, the colour type and the interlacing from the header, if it is the first chunk.
func perPixelPNG(b []byte) int64 {
	const kindAt, depthAt, interlaceAt, grey, paletted = 12, 24, 28, 0, 3
	if !bytes.HasPrefix(b[kindAt:], []byte("IHDR")) { // the decoder passes over what it does not know before it
		return 2 * 8
	}
	depth, colour := b[depthAt], b[depthAt+1]
	transparent := bytes.Contains(b, []byte("tRNS")) // a chunk that gives grey an alpha channel
	n := max(1, int64(depth)/8)
	if colour != paletted && (colour != grey || transparent) {
		n *= 4
	}
	if b[interlaceAt] != 0 {
		n *= 2 // it is decoded into seven smaller pictures first, of as many pixels together
	}
	return n
}

// perPixelWebP goes by the first chunk.
func perPixelWebP(b []byte) int64 {
	const kindAt, flagsAt, alphaFlag = 12, 20, 0x10
	// Lossy is 4:2:0, rounded up; lossless is NRGBA and, with a palette, the packed picture; the alpha channel of a
	// lossy picture is decoded as a lossless picture of its own.
	const lossy, lossless, alpha = 2, 6, 1
	if len(b) > flagsAt {
		kind := string(b[kindAt : kindAt+4])
		switch {
		case kind == "VP8 ":
			return lossy
		case kind == "VP8L", kind == "VP8X" && b[flagsAt]&alphaFlag == 0:
			return lossless
		}
	}
	return lossy + lossless + alpha
}
