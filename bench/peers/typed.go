package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The index of pods by the node that they run on.
const byNode = "node"

// Pods, decoded from protobuf into their Go type.
func typed(config *rest.Config) (*contestant, error) {
	client, err := kubernetes.NewForConfig(inProtobuf(config))
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripped))
	pods := factory.Core().V1().Pods()
	informer, lister := pods.Informer(), pods.Lister()
	indexers := cache.Indexers{byNode: func(object any) ([]string, error) {
		pod, is := object.(*corev1.Pod)
		if !is {
			return nil, fmt.Errorf("not a pod: %T", object)
		}
		return []string{pod.Spec.NodeName}, nil
	}}
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, err
	}
	seen := newSeen()
	registration, err := informer.AddEventHandler(handler(seen, func(object any) int {
		pod, is := object.(*corev1.Pod)
		if !is {
			return 0
		}
		return parts(pod)
	}))
	if err != nil {
		return nil, err
	}
	factory.StartWithContext(context.Background())
	if !cache.WaitFor(context.Background(), "", registration.HasSyncedChecker()) {
		return nil, fmt.Errorf("the pods do not get in sync")
	}
	indexer := informer.GetIndexer()
	count := func() int { return len(indexer.ListKeys()) }
	reads := func() *reads { return typedReads(indexer, lister) }
	return &contestant{objects: count(), count: count, seen: seen, reads: reads}, nil
}

// Reads that look into typed pods.
func typedReads(indexer cache.Indexer, lister listers.PodLister) *reads {
	return &reads{
		keys:   slices.Sorted(slices.Values(indexer.ListKeys())),
		values: slices.Sorted(slices.Values(indexer.ListIndexFuncValues(byNode))),
		get: func(key string) int {
			namespace, name, _ := strings.Cut(key, "/")
			pod, err := lister.Pods(namespace).Get(name)
			if err != nil {
				return 0
			}
			return len(pod.Spec.Containers)
		},
		indexed: func(node string) int {
			found := 0
			objects, err := indexer.ByIndex(byNode, node)
			if err != nil {
				return 0
			}
			for _, object := range objects {
				if pod, is := object.(*corev1.Pod); is {
					found += len(pod.Spec.Containers)
				}
			}
			return found
		},
		labels: valuesOf(indexer, "app"),
		labelled: func(app string) int {
			found := 0
			pods, err := lister.List(labels.SelectorFromSet(labels.Set{"app": app}))
			if err != nil {
				return 0
			}
			for _, pod := range pods {
				found += len(pod.Name)
			}
			return found
		},
		snapshot: func() int {
			pods, err := lister.List(labels.Everything())
			if err != nil {
				return 0
			}
			return len(pods)
		},
		list: func() int {
			found := 0
			pods, err := lister.List(labels.Everything())
			if err != nil {
				return 0
			}
			for _, pod := range pods {
				found += len(pod.Spec.Containers)
			}
			return found
		},
	}
}

// The values that a label has, in their order.
func valuesOf(indexer cache.Indexer, label string) []string {
	values := map[string]bool{}
	for _, object := range indexer.List() {
		if read, err := meta.Accessor(object); err == nil {
			values[read.GetLabels()[label]] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// A handler that reads the metadata of every object, and of those that are updated more when that is asked for.
func handler(seen *seen, whole func(any) int) cache.ResourceEventHandler {
	metadata := func(object any) int {
		read, err := meta.Accessor(object)
		if err != nil {
			return 0
		}
		return len(read.GetNamespace()) + len(read.GetName()) + len(read.GetResourceVersion()) + len(read.GetLabels())
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen.sink.Add(uint64(metadata(object))) },
		UpdateFunc: func(_, object any) {
			if seen.stamps.wanted.Load() {
				if read, err := meta.Accessor(object); err == nil {
					seen.stamps.saw(read.GetAnnotations())
				}
			}
			found := metadata(object)
			if seen.whole.Load() {
				found += whole(object)
			}
			seen.sink.Add(uint64(found))
			seen.updates.add()
		},
	}
}

// Looks at every part of a pod that has parts.
func parts(pod *corev1.Pod) int {
	found := len(pod.Spec.Volumes) + len(pod.Spec.Tolerations) + len(pod.Status.PodIPs)
	for _, container := range pod.Spec.Containers {
		found += len(container.Name) + len(container.Image) + len(container.Ports) + len(container.VolumeMounts)
		for _, variable := range container.Env {
			found += len(variable.Name) + len(variable.Value)
		}
	}
	for _, condition := range pod.Status.Conditions {
		found += len(condition.Type) + len(condition.Status) + len(condition.Message)
	}
	for _, status := range pod.Status.ContainerStatuses {
		found += len(status.Name) + len(status.ImageID) + int(status.RestartCount)
	}
	return found
}

// What people recommend who want less memory.
func stripped(object any) (any, error) {
	if read, err := meta.Accessor(object); err == nil {
		read.SetManagedFields(nil)
	}
	return object, nil
}

func inProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}
