package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestNothingAsksForCompressionWithTLSAndWithout(t *testing.T) {
	asked := make(chan string, 1)
	answer := http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		asked <- request.Header.Get("Accept-Encoding")
	})
	plain, encrypted := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer encrypted.Close()
	for _, url := range []string{plain.URL, encrypted.URL} {
		config := uncompressed(&rest.Config{Host: url})
		config.Insecure = url == encrypted.URL
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if encoding := <-asked; encoding != "" {
			t.Errorf("%s was asked for %q", url, encoding)
		}
	}
}
