// Prints what JSON encoding does with the Go types of the built-in kinds: field names, types, pointers,
// omitempty and omitzero, embedded structs, patch tags, types that decode themselves; and the numbers that
// fields have in protobuf.
//
// OpenAPI does not say these things, and an object's stored form depends on them. `cargo xtask kinds`
// runs this in the module of the real servers, so that the types are exactly theirs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A place: one Go type, with the pointers taken off.
type place struct {
	// string, bool, int32, int64, uint8, float64, bytes, any, list, map, ref.
	Kind string `json:"kind"`
	// As encoding/json names it in errors.
	Go  string `json:"go"`
	Ref string `json:"ref,omitempty"`
	// Of a list or a map.
	Elem    *place `json:"elem,omitempty"`
	Pointer bool   `json:"pointer,omitempty"`
	// A named list that is a message of its own in protobuf, with the items as field 1.
	Wrapped bool `json:"wrapped,omitempty"`
}

type field struct {
	Name      string `json:"name"`
	Type      place  `json:"type"`
	OmitEmpty bool   `json:"omitEmpty,omitempty"`
	OmitZero  bool   `json:"omitZero,omitempty"`
	// Go names of the embedded structs that it sits in.
	Via []string `json:"via,omitempty"`
	// Protobuf field numbers: of the embedded structs that it sits in, then its own. Empty: not on the wire.
	Numbers       []int  `json:"numbers,omitempty"`
	PatchStrategy string `json:"patchStrategy,omitempty"`
	PatchMergeKey string `json:"patchMergeKey,omitempty"`
}

type structure struct {
	Go string `json:"go"`
	// Implements json.Unmarshaler: its fields are not read by reflection.
	Custom bool    `json:"custom,omitempty"`
	Fields []field `json:"fields"`
}

type output struct {
	// group/version/kind to definition name.
	Kinds map[string]string    `json:"kinds"`
	Types map[string]structure `json:"types"`
}

var out = output{Kinds: map[string]string{}, Types: map[string]structure{}}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	marshaler   = reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
	modelNamer  = reflect.TypeFor[interface{ OpenAPIModelName() string }]()
)

func main() {
	if err := apiextensions.AddToScheme(scheme.Scheme); err != nil {
		fail(err)
	}
	if err := apiregistration.AddToScheme(scheme.Scheme); err != nil {
		fail(err)
	}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" {
			continue
		}
		out.Kinds[gvk.Group+"/"+gvk.Version+"/"+gvk.Kind] = define(t)
	}
	define(reflect.TypeFor[metav1.DeleteOptions]())
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(out); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// The name that OpenAPI gives to a type.
func definition(t reflect.Type) string {
	if t.Implements(modelNamer) {
		return reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }).OpenAPIModelName()
	}
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}

func define(t reflect.Type) string {
	name := definition(t)
	if _, seen := out.Types[name]; seen {
		return name
	}
	out.Types[name] = structure{} // Types refer to themselves.
	result := structure{Go: t.String(), Custom: reflect.PointerTo(t).Implements(unmarshaler), Fields: []field{}}
	if t.Kind() == reflect.Struct && !result.Custom {
		collect(t, nil, []int{}, &result.Fields)
	}
	out.Types[name] = result
	return name
}

func collect(t reflect.Type, via []string, numbers []int, fields *[]field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		parts := strings.Split(tag, ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && parts[0] == "" && f.Type.Kind() == reflect.Struct {
			collect(f.Type, append(append([]string{}, via...), f.Name), number(f, numbers), fields)
			continue
		}
		name := parts[0]
		if !tagged || name == "" {
			name = f.Name
		}
		one := field{
			Name:          name,
			Type:          describe(f.Type),
			Via:           via,
			Numbers:       number(f, numbers),
			PatchStrategy: f.Tag.Get("patchStrategy"),
			PatchMergeKey: f.Tag.Get("patchMergeKey"),
		}
		for _, option := range parts[1:] {
			switch option {
			case "omitempty":
				one.OmitEmpty = true
			case "omitzero":
				one.OmitZero = true
			case "inline":
			default:
				fail(fmt.Errorf("%s.%s: unknown tag option %q", t, f.Name, option))
			}
		}
		*fields = append(*fields, one)
	}
}

// The way to a field on the wire; nil where it, or what it sits in, is not there.
func number(f reflect.StructField, outer []int) []int {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if outer == nil || len(parts) < 2 {
		return nil
	}
	own, err := strconv.Atoi(parts[1])
	if err != nil {
		fail(fmt.Errorf("%s: %w", f.Name, err))
	}
	return append(append([]int{}, outer...), own)
}

func describe(t reflect.Type) place {
	if t.Kind() == reflect.Pointer {
		inner := describe(t.Elem())
		inner.Pointer = true
		return inner
	}
	p := place{Go: t.String()}
	if t.Name() != "" && reflect.PointerTo(t).Implements(unmarshaler) {
		p.Kind, p.Ref = "ref", define(t)
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.Kind = "string"
	case reflect.Bool:
		p.Kind = "bool"
	case reflect.Int32:
		p.Kind = "int32"
	case reflect.Int64, reflect.Int:
		p.Kind = "int64"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.Kind = t.Kind().String()
	case reflect.Float64:
		p.Kind = "float64"
	case reflect.Interface:
		p.Kind = "any"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			p.Kind = "bytes"
			break
		}
		p.Kind = "list"
		elem := describe(t.Elem())
		p.Elem = &elem
		p.Wrapped = t.Name() != "" && reflect.PointerTo(t).Implements(marshaler)
	case reflect.Map:
		p.Kind = "map"
		elem := describe(t.Elem())
		p.Elem = &elem
	case reflect.Struct:
		p.Kind, p.Ref = "ref", define(t)
	default:
		fail(fmt.Errorf("%s: a %s", t, t.Kind()))
	}
	return p
}
