package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The custom resource that the benchmark fills the cluster with.
var gadgets = schema.GroupVersionResource{Group: "load.kube-informer.dev", Version: "v1", Resource: "gadgets"}

// Custom resources, decoded from JSON into maps.
func dynamicResources(config *rest.Config) (*contestant, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(gadgets).Informer()
	if err := informer.SetTransform(stripped); err != nil {
		return nil, err
	}
	seen := newSeen()
	registration, err := informer.AddEventHandler(handler(seen, func(object any) int {
		gadget, is := object.(*unstructured.Unstructured)
		if !is {
			return 0
		}
		return len(gadget.Object)
	}))
	if err != nil {
		return nil, err
	}
	factory.Start(nil)
	if !cache.WaitFor(context.Background(), "", registration.HasSyncedChecker()) {
		return nil, fmt.Errorf("the gadgets do not get in sync")
	}
	count := func() int { return len(informer.GetStore().ListKeys()) }
	return &contestant{objects: count(), count: count, seen: seen}, nil
}
