//! DKIM signatures (RFC 6376) by keys of any size; libraries refuse to sign with short ones.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

/// The prefix of a SHA-256 digest that is signed. Source: RFC 8017, 9.2.
const DIGEST_BEHIND: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];
/// The bytes after the modulus in the encoding of a public key: the exponent 65537.
const BEHIND_MODULUS: usize = 5;

/// An RSA key of a domain. Its selector says how many bits it has.
pub(crate) struct Key {
    pub(crate) bits: usize,
    /// In base64, as it is published.
    public: &'static str,
    /// The private exponent, in hex.
    exponent: &'static str,
}

impl Key {
    /// Keys of these tests alone; the last one is as long as it should be.
    pub(crate) const ALL: [Self; 3] = [
        Self {
            bits: 512,
            public: "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAMP6VqoQ73AX7NOS++bNCZvkxOUNi8NG0sV5xeXNzHXE+yrWT/oMnofqUR9hy+I7\
             PAiyW/nwpBxZq1cxyL4jPrUCAwEAAQ==",
            exponent: "894ba35567a1e6fccbec7967c28cd8737fb4b4e76587bbe14379893bf28e8fdde0a336aa23fdcb740a590ba4218ee8aa\
             b800e964774ab364f46c85a5f2da84ed",
        },
        Self {
            bits: 768,
            public: "MHwwDQYJKoZIhvcNAQEBBQADawAwaAJhAK2lKh31osVfgbGxRupj60ylemJjYegEVq54Suvz2h/dG9glIuIhBdRXISemhO+I\
             zFK9OHbq6z8zTA8SNITCRfUgdk8v5uaH0BZBTsY79wurKczIrfd9bFGoVZswcYvJBQIDAQAB",
            exponent: "3c2b5015c388dc6584b642dc74d99cae1964f7f4c1f73891a4b1101d04895fa32943d3526c12cf474dcdb2449429c037\
             a277b22ea4a5d12e6b9daf83d01ae046a221e933958ccba124c1a9a5f0cb240663956f32f5758ba6bfab88d9e459cdfd",
        },
        Self {
            bits: 2048,
            public: "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtZGr5QlsbxGfb/riweo78tJjLIYiPk7jbizebLB0NBdCz7KmMHEv\
             ZTnLX9OdCIq6iXOccWpdDWchI4GV93/LMaYtQ9hlvwWpD7MJtwAT+/seVvXRqa/NPmIVcTpqmWKaNDWNmTnrTH+QV9emrWSt\
             C5WjTDhU595JvTP7HJO1b9ZP2brJaML/ZdtmKp1G0ux+7g+WVlOmiV7tEAdI68zDofkZUkcjowS4DaZk1CPyzn/qDez4RcAf\
             9ic0rzU2nMpO35YLyQy03TfHsAd5KZzPAHt1RbD8Kvjn4Caw+nihPHjHSbT+5HtyAcnys8ISAMPpm0xdmjgo+5Ig2vZocAqt\
             eQIDAQAB",
            exponent: "388782fe19385af720ad97bfe76e911c31fade8db27d8ca9d4f33af1f63ccc187ada12a541a8b90f96da0b2a18d16948\
             be3f771c59cefa55478cf5775b212d8cb383181eabba66bafe54c8f1d839d13ce34a195df4e84fca3838624053d5c90e\
             cadacbc50f04460fceb1d779140de5283869ae11a9db14ff8c7148b5e4fb869d26740561a634475b5efe3cd0a657d4c9\
             92c0a2f2b51cb7de5bd33c9d9b337c46ba2355cc8bba2c3072a327daef6fa02640a07abdccd268a149e9dbaf5f9af994\
             35464757bb807a3310c13cf1d8bc0d31f3eedd6e9b6d0461a33aa0f2b5ca7a49c9ea682c8125d4b393289ebfff99bcf4\
             57a51f22eb58d422c560293917ee9bf",
        },
    ];

    /// One that is long enough.
    pub(crate) fn good() -> Self {
        let [_, _, good] = Self::ALL;
        good
    }

    /// The record that publishes it: its name without the domain, and its text.
    pub(crate) fn record(&self) -> (String, String) {
        (format!("k{}._domainkey", self.bits), format!("v=DKIM1; k=rsa; p={}", self.public))
    }

    /// The modulus.
    pub(crate) fn modulus(&self) -> Vec<u8> {
        let document = BASE64_STANDARD.decode(self.public).expect("base64");
        document[document.len() - BEHIND_MODULUS - self.bits / 8..document.len() - BEHIND_MODULUS].to_vec()
    }

    /// A signature by PKCS #1 v1.5 over a digest by SHA-256.
    pub(crate) fn signature(&self, text: &str) -> Vec<u8> {
        let bytes = self.bits / 8;
        let digest = [&DIGEST_BEHIND[..], &Sha256::digest(text.as_bytes())].concat();
        let filled = vec![0xff; bytes - digest.len() - 3];
        let block = [&[0, 1], &filled[..], &[0], &digest].concat();
        let exponent = BigUint::parse_bytes(self.exponent.as_bytes(), 16).expect("hex");
        let modulus = BigUint::from_bytes_be(&self.modulus());
        let signed = BigUint::from_bytes_be(&block).modpow(&exponent, &modulus).to_bytes_be();
        [vec![0; bytes - signed.len()], signed].concat()
    }

    /// The message with a signature of its domain above it, over its body and all of its fields.
    pub(crate) fn signed(&self, domain: &str, message: &str) -> String {
        let (head, body) = message.split_once("\r\n\r\n").expect("a message has a head");
        let names: Vec<&str> = head.split("\r\n").filter_map(|line| line.split(':').next()).collect();
        let body = BASE64_STANDARD.encode(Sha256::digest(body.as_bytes()));
        let field = format!(
            "DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple; d={domain}; s=k{}; h={}; bh={body}; b=",
            self.bits,
            names.join(":")
        );
        let signature = BASE64_STANDARD.encode(self.signature(&format!("{head}\r\n{field}")));
        format!("{field}{signature}\r\n{message}")
    }
}
