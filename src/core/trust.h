/* trust.h - which certificate authorities a client trusts.
 *
 *  - `ca_pem` given: those certificates and no others.
 *  - `cert_file` given (SSL_CERT_FILE): that file in place of the library's default.
 *  - `extra_certs` given (NODE_EXTRA_CA_CERTS): that file's certificates in addition to the
 * default.
 *
 * There is no way to turn the check off. */
#ifndef SBX_TRUST_H
#define SBX_TRUST_H

#include "core/buf.h"
#include "core/curl_dl.h"
#include "core/loop.h"

typedef struct sbx_trust {
  bool ready;            /* the files were read */
  const char *cert_file; /* borrowed; NULL: none */
  const char *extra_certs;
  bool exclusive;        /* the default's directory of certificates does not count */
  bool extra_unreadable; /* NODE_EXTRA_CA_CERTS names a file that cannot be read */
  sbx_buf pem;           /* certificates to trust; empty: what the default holds */
  const sbx_loop *loop;  /* whose file `path` is */
  const char *path;      /* a file of the loop's with the same bytes as `pem`, or NULL */
} sbx_trust;

/* No I/O. `ca_pem` is copied, the names (NULL: none) are borrowed. SBX_EINVAL when `ca_pem` is not
 * empty and holds no certificate; SBX_ENOMEM. */
int sbx_trust_init(sbx_trust *trust, sbx_slice ca_pem, const char *cert_file,
                   const char *extra_certs, sbx_err *err);
void sbx_trust_deinit(sbx_trust *trust);
/* Sets the options of `easy`, which is for a transfer of `loop`; `trust` must outlive it. The first
 * call reads the files. SBX_ENOMEM, SBX_ENET when descriptors
 * have run out, or SBX_ETLS when the library cannot take the certificates. */
int sbx_trust_apply(sbx_trust *trust, sbx_loop *loop, const sbx_curl *curl, CURL *easy,
                    sbx_err *err);

#endif
