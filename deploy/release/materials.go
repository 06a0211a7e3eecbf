package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// materials writes a bill of materials for each binary: what the go tool has noted in it, in CycloneDX's format.
func (r *release) materials(_ context.Context, all []target) error {
	for _, t := range all {
		bom, err := r.materialsOf(t)
		if err != nil {
			return err
		}
		err = written(r.name(t.String()+".cdx.json"), func(w io.Writer) error {
			return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).Encode(bom)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *release) materialsOf(t target) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(r.binaries[t])
	if err != nil {
		return nil, err
	}
	sum, err := sha256Of(r.binaries[t])
	if err != nil {
		return nil, err
	}
	curfew := cdx.Component{
		Type: cdx.ComponentTypeApplication, BOMRef: "curfew", Name: filepath.Base(r.binaries[t]), Version: r.version,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}},
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []cdx.Component{{Type: cdx.ComponentTypeLibrary, BOMRef: "pkg:golang/std@" + goVersion, Name: "std", Version: goVersion, PackageURL: "pkg:golang/std@" + goVersion}}
	for _, m := range info.Deps {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil || len(sum) == 0 {
			return nil, fmt.Errorf("%s has no sum, but %q", m.Path, m.Sum)
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		parts = append(parts, cdx.Component{
			Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}, // as in go.sum
		})
	}
	refs := make([]string, len(parts))
	for i := range parts {
		refs[i] = parts[i].BOMRef
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceOID, []byte(sum)).URN() // the same binary, the same number
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.UTC().Format(time.RFC3339), Component: &curfew}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: curfew.BOMRef, Dependencies: &refs}}
	return bom, nil
}
