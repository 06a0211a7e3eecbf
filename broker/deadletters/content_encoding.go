package deadletters

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// ErrEncoding is wrapped by errors about a content-encoding that is not known.
var ErrEncoding = errors.New("this content-encoding is not known")

// maxWindow bounds the window of a zstd stream, in bytes. Encoders use 8 MiB at most unless they are told otherwise.
const maxWindow = 8 << 20

// Unpack unpacks a body with a content-encoding: gzip, deflate (with zlib's header or without) or zstd. It unpacks at most most bytes,
// however small the body is; more reports that there are more. A body without an encoding is returned as it is. With an error, plain is
// what could be read before it.
func Unpack(encoding string, body []byte, most int) (plain []byte, more bool, err error) {
	var r io.Reader
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity", "utf-8", "utf8": // some write the character set here
		return body, false, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		if r, err = zlib.NewReader(bytes.NewReader(body)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			defer z.Close()
			r = z
		}
	default:
		return nil, false, fmt.Errorf("%w: %q", ErrEncoding, encoding)
	}
	if err != nil {
		return nil, false, fmt.Errorf("unpack %s: %w", encoding, err)
	}
	plain, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
	if len(plain) > most {
		return plain[:most], true, nil
	}
	if err != nil {
		err = fmt.Errorf("unpack %s: %w", encoding, err)
	}
	return plain, false, err
}

// Pack is the reverse of Unpack, for an encoding that IsPacked. If the old body was deflated without zlib's header, so is the
// new one: whoever reads it expects none.
func Pack(encoding string, plain, was []byte) ([]byte, error) {
	var packed bytes.Buffer
	var w io.WriteCloser
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&packed)
	case "deflate":
		w = zlib.NewWriter(&packed)
		if _, err := zlib.NewReader(bytes.NewReader(was)); len(was) > 0 && err != nil {
			w, _ = flate.NewWriter(&packed, flate.DefaultCompression) // it fails only for an unknown level
		}
	case "zstd":
		z, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		w = z
	default:
		return nil, fmt.Errorf("%w: %q", ErrEncoding, encoding)
	}
	_, err := w.Write(plain)
	err = errors.Join(err, w.Close())
	return packed.Bytes(), err
}

// IsPacked reports whether the encoding is one that Unpack unpacks.
func IsPacked(encoding string) bool {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip", "deflate", "zstd":
		return true
	}
	return false
}
