/* browser_passkey: what Chromium 156 gave for the options of a real server, with its virtual authenticator:
 * members of PublicKeyCredential.toJSON() at a creation and a login. */
#ifndef STAMPD_TEST_BROWSER_PASSKEY_H
#define STAMPD_TEST_BROWSER_PASSKEY_H

#define BROWSER_RP               "localhost"
#define BROWSER_ORIGIN           "http://localhost:44641"
#define BROWSER_ID               "l_dpSL3djOkYrh99wQlzxJCt5T6kDnmaMVrOMnMkcrc"
#define BROWSER_CREATE_CHALLENGE "w72vbAHQlJSkuW6amcNzFzYt-c6UPn1DUYHExm5tGKrDaDMNMiTLX-p-PajdZSvDhE36"
#define BROWSER_CREATE_CLIENT_DATA                                                                           \
    "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIiwiY2hhbGxlbmdlIjoidzcydmJBSFFsSlNrdVc2YW1jTnpGell0LWM2VV"             \
    "BuMURVWUhFeG01dEdLckRhRE1OTWlUTFgtcC1QYWpkWlN2RGhFMzYiLCJvcmlnaW4iOiJodHRwOi8vbG9jYWxob3N0"             \
    "OjQ0NjQxIiwiY3Jvc3NPcmlnaW4iOmZhbHNlLCJvdGhlcl9rZXlzX2Nhbl9iZV9hZGRlZF9oZXJlIjoiZG8gbm90IG"             \
    "NvbXBhcmUgY2xpZW50RGF0YUpTT04gYWdhaW5zdCBhIHRlbXBsYXRlLiBTZWUgaHR0cHM6Ly9nb28uZ2wveWFiUGV4"             \
    "In0"
#define BROWSER_CREATE_ATTESTATION                                                                           \
    "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVikSZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2NFAAAAAQ"             \
    "ECAwQFBgcIAQIDBAUGBwgAIJf3aUi93YzpGK4ffcEJc8SQreU-pA55mjFazjJzJHK3pQECAyYgASFYIA9Ndy-4vn-q"             \
    "Bmlf2VCxuimpfEZiwxqJ6wGGq2QLVMTaIlggJ17uuN7Dxrt5ymUavsbLXybBqv9gqkXSeQmggs677q4"
#define BROWSER_GET_CHALLENGE "B_rHUitBSk61hkuekQ8iJvzmI0cBsb3RVKsl5FGOaKC7gJY-kfrxABGczCBFkP2ReULB"
#define BROWSER_GET_CLIENT_DATA                                                                              \
    "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiQl9ySFVpdEJTazYxaGt1ZWtROGlKdnptSTBjQnNiM1"             \
    "JWS3NsNUZHT2FLQzdnSlkta2ZyeEFCR2N6Q0JGa1AyUmVVTEIiLCJvcmlnaW4iOiJodHRwOi8vbG9jYWxob3N0OjQ0"             \
    "NjQxIiwiY3Jvc3NPcmlnaW4iOmZhbHNlfQ"
#define BROWSER_GET_DATA "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAg"
#define BROWSER_GET_SIGNATURE                                                                                \
    "MEYCIQCsg25PgzE9bcPZnvmDy16SeU4rzpBueelRPGd1rxkrHAIhALHTTrmwea96sTrrm0CDuOTzqx2uZ-7l820z--"             \
    "EBL992"

#endif
