// Prints the schema table: what the protobuf messages of the built-in kinds look like in JSON.
//
// The Go types decide, with their `protobuf` and `json` tags: a number, a JSON name, a shape (value,
// pointer, list, map, embedded), a kind, and what JSON shows for a field that is not on the wire. Whatever
// the table has no word for ends the program, so that a new release cannot bring it in unseen. What it says
// of absent and of zero fields is compared with what the generated code and encoding/json do.
//
// `cargo xtask schema` runs this in the module of the real servers, so that the types are exactly theirs.
package main

import (
	"bufio"
	"cmp"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
)

// What client-go's scheme lacks.
var more = []func(*runtime.Scheme) error{
	admissionv1.AddToScheme,
	admissionv1beta1.AddToScheme,
	apidiscoveryv2.AddToScheme,
	apidiscoveryv2beta1.AddToScheme,
	apiextensionsv1.AddToScheme,
	apiextensionsv1beta1.AddToScheme,
	apiregistrationv1.AddToScheme,
	apiregistrationv1beta1.AddToScheme,
	imagepolicyv1alpha1.AddToScheme,
	metav1.AddMetaToScheme,
	metav1beta1.AddMetaToScheme,
}

// Kinds that protobuf cannot carry: servers answer them as JSON only.
var jsonOnly = []reflect.Type{reflect.TypeFor[metav1.Table]()}

// Types that write their own JSON, and the letter of each in the table.
var special = map[reflect.Type]byte{
	reflect.TypeFor[metav1.Time]():               'T',
	reflect.TypeFor[metav1.MicroTime]():          'U',
	reflect.TypeFor[resource.Quantity]():         'Q',
	reflect.TypeFor[intstr.IntOrString]():        'I',
	reflect.TypeFor[runtime.RawExtension]():      'R',
	reflect.TypeFor[metav1.FieldsV1]():           'R',
	reflect.TypeFor[apiextensionsv1.JSON]():      'R',
	reflect.TypeFor[apiextensionsv1beta1.JSON](): 'R',
}

// Types that write their own JSON around a message, which stands in the table behind the letter.
type choice struct {
	letter  byte
	message reflect.Type
}

var choices = map[reflect.Type]choice{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():             {'B', reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():            {'A', reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()},
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray]():      {'P', reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()},
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrBool]():        {'B', reflect.TypeFor[apiextensionsv1beta1.JSONSchemaProps]()},
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrArray]():       {'A', reflect.TypeFor[apiextensionsv1beta1.JSONSchemaProps]()},
	reflect.TypeFor[apiextensionsv1beta1.JSONSchemaPropsOrStringArray](): {'P', reflect.TypeFor[apiextensionsv1beta1.JSONSchemaProps]()},
}

var (
	protoMarshaler = reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
	jsonMarshaler  = reflect.TypeFor[json.Marshaler]()
	textMarshaler  = reflect.TypeFor[encoding.TextMarshaler]()
	typeMeta       = reflect.TypeFor[metav1.TypeMeta]()
	listMeta       = reflect.TypeFor[metav1.ListMeta]()
)

// One line of a message. What the letters mean stands where they are read, in the library's schema/table.rs.
type field struct {
	number              int
	shape, absent, kind byte
	name                string
	// For kinds that name one.
	message reflect.Type
}

type root struct {
	apiVersion, kind string
	message          reflect.Type
}

var messages = map[reflect.Type][]field{}

func main() {
	for _, add := range more {
		if err := add(scheme.Scheme); err != nil {
			fail("%v", err)
		}
	}
	metav1.AddToGroupVersion(scheme.Scheme, metav1.SchemeGroupVersion)
	var roots []root
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || slices.Contains(jsonOnly, t) {
			continue
		}
		define(t)
		roots = append(roots, root{gvk.GroupVersion().String(), gvk.Kind, t})
	}
	write(roots)
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "tools/schema: "+format+"\n", args...)
	os.Exit(1)
}

// The package's group and version, and the type's own name.
func name(t reflect.Type) (pkg, own string) {
	parts := strings.Split(t.PkgPath(), "/")
	if len(parts) < 2 || t.Name() == "" {
		fail("%s is not a type of an API group", t)
	}
	return strings.Join(parts[len(parts)-2:], "/"), t.Name()
}

func full(t reflect.Type) string {
	pkg, own := name(t)
	return pkg + "." + own
}

// Adds a message and all that it reaches.
func define(t reflect.Type) {
	if _, seen := messages[t]; seen {
		return
	}
	if t.Kind() != reflect.Struct || !reflect.PointerTo(t).Implements(protoMarshaler) {
		fail("%s is not a protobuf message", t)
	}
	if ownJSON(t) {
		fail("%s writes its own JSON", t)
	}
	messages[t] = nil // Types refer to themselves.
	var fields []field
	for i := range t.NumField() {
		if f, ok := describe(t, t.Field(i)); ok {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(fields); i++ {
		if fields[i].number == fields[i-1].number {
			fail("%s has two fields of number %d", t, fields[i].number)
		}
	}
	messages[t] = fields
}

func ownJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// What the table says of one field; false if it has nothing to say.
func describe(t reflect.Type, f reflect.StructField) (field, bool) {
	where := t.String() + "." + f.Name
	if !f.IsExported() {
		fail("%s is not exported", where)
	}
	number, onWire := number(where, f.Tag)
	jsonName, omitEmpty, omitZero := jsonTag(where, f)
	if !onWire {
		// The envelope carries the type of a root.
		isType := f.Type == typeMeta && f.Anonymous && jsonName == ""
		if !isType && jsonName != "-" {
			fail("%s is in JSON only", where)
		}
		return field{}, false
	}
	out := field{number: number, name: jsonName}
	if jsonName == "-" {
		fail("%s is on the wire only", where)
	}
	if f.Anonymous && jsonName == "" {
		if f.Type.Kind() != reflect.Struct {
			fail("%s is embedded, and no struct", where)
		}
		out.shape, out.absent = '+', '!'
		out.kind, out.message = kind(where, f.Type)
		if out.kind != 'M' {
			fail("%s is embedded, and no message", where)
		}
		return out, true
	}
	if jsonName == "" {
		fail("%s has no JSON name", where)
	}
	omit := omitEmpty || omitZero
	switch f.Type.Kind() {
	case reflect.Pointer:
		out.shape, out.absent = '*', pick(omit, '?', '~')
		out.kind, out.message = kind(where, f.Type.Elem())
	case reflect.Map:
		if f.Type.Key().Kind() != reflect.String || ownJSON(f.Type.Key()) {
			fail("%s: keys are not strings", where)
		}
		if omitZero || f.Type.Name() != "" && reflect.PointerTo(f.Type).Implements(protoMarshaler) {
			fail("%s: not foreseen for a map", where)
		}
		out.shape, out.absent = '{', pick(omit, '?', '~')
		out.kind, out.message = kind(where, f.Type.Elem())
	case reflect.Slice:
		if omitZero {
			fail("%s: omitzero is not foreseen for a list", where)
		}
		if f.Type.Elem().Kind() == reflect.Uint8 || reflect.PointerTo(f.Type).Implements(protoMarshaler) {
			// Nil is null; what is empty on the wire is not nil.
			out.shape, out.absent = '.', pick(omit, '-', '~')
			out.kind, out.message = kind(where, f.Type)
			break
		}
		out.shape, out.absent = '[', pick(omit, '?', '~')
		if jsonName == "items" && hasListMeta(t) {
			if omit {
				fail("%s: items that are left out", where)
			}
			out.absent = '0' // Servers see to it that these are never nil.
		}
		out.kind, out.message = kind(where, f.Type.Elem())
	case reflect.Struct:
		out.shape, out.absent = '.', pick(omitZero, '-', '!') // omitempty does nothing here.
		out.kind, out.message = kind(where, f.Type)
		if omitZero && out.kind != 'T' {
			fail("%s: omitzero is foreseen for times only", where)
		}
	default:
		out.shape, out.absent = '.', pick(omit, '-', '!')
		out.kind, out.message = kind(where, f.Type)
	}
	return out, true
}

func pick(condition bool, yes, no byte) byte {
	if condition {
		return yes
	}
	return no
}

func hasListMeta(t reflect.Type) bool {
	f, ok := t.FieldByName("ListMeta")
	return ok && f.Anonymous && f.Type == listMeta
}

// The number on the wire. The rest of the tag does not count: the wire type in it may be wrong
// (ListMeta.remainingItemCount), as may be what it says of lists.
func number(where string, tag reflect.StructTag) (int, bool) {
	text, ok := tag.Lookup("protobuf")
	if !ok {
		return 0, false
	}
	parts := strings.Split(text, ",")
	if len(parts) < 3 {
		fail("%s: protobuf tag %q", where, text)
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 || number > 999 {
		fail("%s: protobuf number in %q", where, text)
	}
	return number, true
}

// The name as encoding/json sees it: empty for what is embedded flat.
func jsonTag(where string, f reflect.StructField) (name string, omitEmpty, omitZero bool) {
	text, tagged := f.Tag.Lookup("json")
	if !tagged {
		fail("%s has no JSON tag", where)
	}
	parts := strings.Split(text, ",")
	for _, option := range parts[1:] {
		switch option {
		case "omitempty":
			omitEmpty = true
		case "omitzero":
			omitZero = true
		case "inline": // encoding/json does not know it.
		default:
			fail("%s: JSON option %q", where, option)
		}
	}
	name = parts[0]
	if name == "-" && len(parts) > 1 {
		fail("%s: JSON tag %q", where, text)
	}
	if name == "" && !f.Anonymous {
		name = f.Name
	}
	return name, omitEmpty, omitZero
}

// The letter of a value's type, and the message that it names.
func kind(where string, t reflect.Type) (letter byte, message reflect.Type) {
	if letter, ok := special[t]; ok {
		return letter, nil
	}
	if choice, ok := choices[t]; ok {
		define(choice.message)
		return choice.letter, choice.message
	}
	if t.Name() != "" && ownJSON(t) {
		fail("%s: %s writes its own JSON", where, t)
	}
	if t.Kind() != reflect.Struct && t.Name() != "" && reflect.PointerTo(t).Implements(protoMarshaler) {
		if t.Kind() != reflect.Slice || t.Elem() != reflect.TypeFor[string]() {
			fail("%s: %s is a message, and neither a struct nor a list of strings", where, t)
		}
		return 'L', nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return 'b', nil
	case reflect.Int32:
		return 'i', nil
	case reflect.Int64:
		return 'l', nil
	case reflect.Float64:
		return 'd', nil
	case reflect.String:
		return 's', nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return 'y', nil
		}
	case reflect.Struct:
		define(t)
		return 'M', t
	}
	fail("%s: the table has no word for %s", where, t)
	return 0, nil
}

// Compares what the table says of a message's fields with what the generated code and encoding/json do.
func prove(t reflect.Type) {
	zero := shown(t, nil)
	for _, f := range messages[t] {
		where := fmt.Sprintf("%s, field %d", t, f.number)
		if f.shape == '+' {
			continue // Its fields are proved in its own message.
		}
		value, present := zero[f.name]
		switch f.absent {
		case '?', '-':
			expect(!present, where, "is shown when absent")
		case '~', '0':
			expect(present && value == "null", where, "is not null when absent")
		case '!':
			// Of the special kinds, these have null for zero.
			null := strings.IndexByte("TUR", f.kind) >= 0
			expect(present && (value == "null") == null, where, "is not zero when absent")
		}
		// On the wire, and zero. If the wire type were wrong, the generated code would complain.
		wire := binary.AppendUvarint(nil, uint64(f.number)<<3|uint64(wireType(f)))
		if wireType(f) == 1 {
			wire = append(wire, make([]byte, 8)...)
		} else {
			wire = append(wire, 0)
		}
		_, present = shown(t, wire)[f.name]
		expect(present == (f.absent != '-'), where, "is shown or not, against the table, when zero")
	}
}

func expect(holds bool, where, otherwise string) {
	if !holds {
		fail("%s %s", where, otherwise)
	}
}

func wireType(f field) int {
	switch {
	case f.shape == '{':
		return 2
	case strings.IndexByte("bil", f.kind) >= 0:
		return 0
	case f.kind == 'd':
		return 1
	}
	return 2
}

// What JSON shows of a message that is decoded from some bytes.
func shown(t reflect.Type, wire []byte) map[string]string {
	object := reflect.New(t).Interface()
	if err := object.(interface{ Unmarshal([]byte) error }).Unmarshal(wire); err != nil {
		fail("%s from %x: %v", t, wire, err)
	}
	text, err := json.Marshal(object)
	if err != nil {
		fail("%s: %v", t, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		fail("%s: %v", t, err)
	}
	all := map[string]string{}
	for name, value := range fields {
		all[name] = string(value)
	}
	return all
}

// Names must be unique once embedded messages are laid flat, or encoding/json drops some of them.
func names(t reflect.Type, seen map[string]bool) {
	for _, f := range messages[t] {
		switch {
		case f.shape == '+':
			names(f.message, seen)
		case seen[f.name]:
			fail("%s: %s stands there twice", t, f.name)
		default:
			seen[f.name] = true
		}
	}
}

func write(roots []root) {
	var order []reflect.Type
	fields, taken := 0, map[string]bool{}
	for t, all := range messages {
		if taken[full(t)] {
			fail("two messages have the name %s", full(t))
		}
		taken[full(t)] = true
		names(t, map[string]bool{})
		prove(t)
		fields += len(all)
		order = append(order, t)
	}
	slices.SortFunc(order, func(a, b reflect.Type) int { return cmp.Compare(full(a), full(b)) })
	slices.SortFunc(roots, func(a, b root) int {
		return cmp.Or(cmp.Compare(a.apiVersion, b.apiVersion), cmp.Compare(a.kind, b.kind))
	})

	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, "# Kubernetes 1.%d: %d messages, %d fields, %d roots. Generated by `cargo xtask schema`.\n",
		minor(), len(order), fields, len(roots))
	pkg := ""
	for _, t := range order {
		own := relative(pkg, t)
		if own != t.Name() {
			pkg, own = name(t)
			fmt.Fprintf(out, ":%s\n", pkg)
		}
		fmt.Fprintln(out, own)
		for _, f := range messages[t] {
			fmt.Fprintf(out, "%d%c%c%c", f.number, f.shape, f.absent, f.kind)
			if f.shape != '+' {
				fmt.Fprintf(out, " %s", f.name)
			}
			if f.message != nil {
				fmt.Fprintf(out, " %s", relative(pkg, f.message))
			}
			fmt.Fprintln(out)
		}
	}
	homes, apiVersion := homes(roots), ""
	for _, r := range roots {
		if r.apiVersion != apiVersion {
			apiVersion = r.apiVersion
			fmt.Fprintf(out, "@%s %s\n", apiVersion, homes[apiVersion])
		}
		if r.kind != r.message.Name() {
			fail("the kind %s is the message %s", r.kind, full(r.message))
		}
		fmt.Fprintln(out, relative(homes[apiVersion], r.message))
	}
	if err := out.Flush(); err != nil {
		fail("%v", err)
	}
}

// The package that an API version's own kinds are in: not the one of the kinds that all have.
func homes(roots []root) map[string]string {
	all := map[string]string{}
	for _, r := range roots {
		pkg, _ := name(r.message)
		if home := all[r.apiVersion]; home == "" || home == "meta/v1" {
			all[r.apiVersion] = pkg
		} else if pkg != home && pkg != "meta/v1" {
			fail("%s has kinds of %s and of %s", r.apiVersion, home, pkg)
		}
	}
	return all
}

// The message's name as a package says it: without the package if that is the same.
func relative(pkg string, t reflect.Type) string {
	if own, _ := name(t); own == pkg {
		return t.Name()
	}
	return full(t)
}

// The Kubernetes release, from the version of the module that the types are in: v0.37.1 is 1.37.
func minor() int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		fail("no build information")
	}
	for _, module := range info.Deps {
		if module.Path != "k8s.io/api" {
			continue
		}
		if module.Replace != nil {
			module = module.Replace
		}
		parts := strings.Split(module.Version, ".")
		if number, err := strconv.Atoi(parts[1]); err == nil && parts[0] == "v0" {
			return number
		}
	}
	fail("the version of k8s.io/api is not known")
	return 0
}
