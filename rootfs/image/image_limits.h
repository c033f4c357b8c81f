/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_limits - the numbers that bound an image: cejail-image(1) lists each of them.
 */
#pragma once

#define IMAGE_NAME_MAX    64
#define IMAGE_LAYERS_MAX  60            /* LAYERS_MAX of rootfs/layers.h */
#define IMAGE_ENTRIES_MAX 1000000u      /* files of all layers together, directories included */
#define IMAGE_PATH_MAX    4095          /* bytes of an entry's path, and of a link's target */
#define IMAGE_DEPTH_MAX   256           /* directories in an entry's path */
#define IMAGE_BYTES_MAX   (16ull << 30) /* unpacked, of all layers; --max-size sets another */
#define IMAGE_BLOBS_MAX   4096          /* files in an archive of a layout */
#define IMAGE_LIST_MAX    1024          /* manifests in an index, tags, variables, arguments */
#define IMAGE_NESTED_MAX  3             /* indexes that lead to indexes */
#define IMAGE_PASSWD_MAX  (1u << 20)    /* bytes of /etc/passwd in an image */
/* A JSON document: JSON_BYTES_MAX, JSON_NODES_MAX and JSON_DEPTH_MAX of runtime/base/json/json.h */
